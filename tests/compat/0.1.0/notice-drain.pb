"
u1why