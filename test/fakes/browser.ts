import { chromium } from 'playwright-core'

const executablePath = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => Bun.which(name)).find(Boolean)

/** Whether a Chromium is installed. Without one, the tests that need it are skipped, and a warning says so. */
export const hasBrowser = !!executablePath
if (!hasBrowser)
  console.warn('SKIPPED: the tests in a real browser, because no Chromium was found (apt-get install chromium).')

/** Launches a headless browser, for `await using`. */
export const launchBrowser = () => chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox'] })
