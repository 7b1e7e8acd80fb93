import { chromium } from 'playwright-core'

const executablePath = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => Bun.which(name)).find(Boolean)

/** Whether there is a Chromium to test with; where there is none, the tests that need it say that they are skipped. */
export const hasBrowser = !!executablePath
if (!hasBrowser)
  console.warn('SKIPPED: the tests in a real browser, for no Chromium was found (apt-get install chromium).')

/** A browser without a window, to be had with `await using`. */
export const launchBrowser = () => chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox'] })
