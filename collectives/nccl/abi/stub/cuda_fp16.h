// nccl.h includes it; what we compare needs nothing of it.
#pragma once
