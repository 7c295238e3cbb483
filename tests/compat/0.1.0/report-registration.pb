
3
defaultdigitsj"digits-worker-0*u1Rh:3`jb