import { chromium } from 'playwright-core'

// The shell is the same browser without a window, and opens pages in half the time.
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
const executablePath = NAMES.map((name) => Bun.which(name)).find(Boolean)

/** Whether a Chromium is installed. Without one, the tests that need it are skipped, and a warning says so. */
export const hasBrowser = !!executablePath
if (!hasBrowser)
  console.warn(
    'SKIPPED: the tests in a real browser, because no Chromium was found (apt-get install chromium-headless-shell).',
  )

/** Launches a headless browser, for `await using`. */
export const launchBrowser = (...args: string[]) =>
  chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox', ...args] })
