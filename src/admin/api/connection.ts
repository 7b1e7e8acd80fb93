import { observable } from './observable'

const RETRY_INTERVAL_MS = 2_000

/** Whether the server answers. While it does not, it is asked again until it does. */
export const connection = observable<'online' | 'lost'>('online')

/** Notes that the server has answered. An answer to an earlier request says nothing once the browser is offline. */
export function noteAnswer() {
  if (navigator.onLine) connection.set('online')
}

async function checkUntilOnline() {
  while (connection.get() === 'lost') {
    await new Promise((resolve) => setTimeout(resolve, RETRY_INTERVAL_MS))
    // While the server cannot be reached, this fails as well.
    const answer = await fetch('/health').catch(() => undefined)
    if (answer?.ok) connection.set('online')
  }
}

// The browser knows first, and requests that wait for it do not fail.
addEventListener('offline', () => connection.set('lost'))

connection.subscribe(() => {
  if (connection.get() === 'lost') void checkUntilOnline()
})
