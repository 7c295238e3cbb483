// The process that holds a pod's namespaces open: sleeps until it is told to end, and collects what
// the pod's other processes leave behind when they share its PID namespace.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void End(int signal) {
  (void)signal;
  _exit(0);
}

static void Collect(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction end = {.sa_handler = End};
  struct sigaction collect = {.sa_handler = Collect, .sa_flags = SA_NOCLDSTOP};
  if (sigaction(SIGINT, &end, NULL) != 0 || sigaction(SIGTERM, &end, NULL) != 0 ||
      sigaction(SIGCHLD, &collect, NULL) != 0) {
    return EXIT_FAILURE;
  }
  for (;;) pause();
}
