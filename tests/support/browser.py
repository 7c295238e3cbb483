"""A headless Chromium, for tests of pages."""

import contextlib
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service


LEAST = 500  # a window of Chromium's is not narrower


def narrow(driver, width, height):
    """The page believes to be on a screen of this size."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True})


@contextlib.contextmanager
def chromium(width=1200, height=1500, dark=False, any_certificate=False):
    """A browser with a window of width x height pixels. Everything that it writes is gone afterwards. any_certificate: as if somebody had agreed
    to go on after each warning of a certificate."""
    with tempfile.TemporaryDirectory(prefix="rm-browser-") as home:
        options = Options()
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.set_capability("acceptInsecureCerts", any_certificate)
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu", "--user-data-dir=" + home,
                         "--window-size=%d,%d" % (width, height), *(["--blink-settings=preferredColorScheme=0"] if dark else [])):
            options.add_argument(argument)
        driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver", env={"TMPDIR": home, "HOME": home, "PATH": "/usr/bin:/bin"}),
                                  options=options)
        if width < LEAST:
            narrow(driver, width, height)
        try:
            yield driver
        finally:
            driver.quit()
