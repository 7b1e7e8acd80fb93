import type { Page } from 'playwright-core'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { openPage, setUpAdmin } from './admin-browser'

/** Starts an empty server that may call this machine, signed in as ada, with a client of its API. Dispose it after use. */
export async function openAutomation() {
  const server = await startAtoll({ at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } })
  const { page, errors } = await openPage()
  await setUpAdmin(page, server)
  const signedIn = { username: 'ada', password: PASSWORD, authType: 'oauth' }
  const { token } = (await apiCaller(server.url)('POST', '/api/signin', signedIn)).body.payload
  const call = apiCaller(server.url, { authorization: `Bearer ${token}` })
  const open = (path: string) => page.goto(`${server.url}/admin/automation/${path}`)
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
  }
  return { server, page, errors, call, open, [Symbol.asyncDispose]: close }
}

/** Replaces the code in an editor by the clipboard. */
export async function writeCode(page: Page, label: string, code: string) {
  await page.getByRole('textbox', { name: label, exact: true }).click()
  await page.keyboard.press('Control+a')
  await page.evaluate(`{
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', ${JSON.stringify(code)})
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
  }`)
}
