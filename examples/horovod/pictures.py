"""Pictures to be told apart, made here so that nothing is downloaded: a bar that lies, stands or leans to either side, somewhere in 8x8
noisy pixels.
"""

import numpy as np

CLASSES = 4


def pictures(count, seed):
    """(images [count, 8, 8, 1] of float32, labels [count] of int64)."""
    random = np.random.RandomState(seed)
    images = random.normal(0.0, 0.3, (count, 8, 8, 1)).astype(np.float32)
    labels = random.randint(0, CLASSES, count).astype(np.int64)
    steps = np.arange(5)
    for image, label in zip(images, labels):
        row, column = random.randint(0, 4, 2)
        rows, columns = {0: (0 * steps, steps), 1: (steps, 0 * steps),
                         2: (steps, steps), 3: (steps, 4 - steps)}[int(label)]
        image[row + rows, column + columns, 0] += 1.0
    return images, labels
