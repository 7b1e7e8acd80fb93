// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { toHooksSource } from '../../src/blueprints/typegen/client-source'
import { hasBrowser } from '../fakes/browser'
import { PASSWORD } from '../fakes/cli'
import { bundleForBrowser, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT } from './client-server'

setDefaultTimeout(120_000)

let server: ClientServer
let program: string
beforeAll(async () => {
  server = await startClientServer()
  const files = { 'atoll.ts': server.atoll, 'hooks.ts': toHooksSource('./atoll') }
  program = await bundleForBrowser({ ...files, 'program.ts': toProgram(server.agent._id) })
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

/** An application whose state and functions the test reads from `app`. */
const toProgram = (agent: string) => `
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement as h, Fragment } from 'react'
import { createRoot } from 'react-dom/client'
import { createClient } from './atoll'
import { createHooks } from './hooks'

const client = createClient({ url: location.origin, tenant: '${TENANT}' })
const hooks = createHooks(client)
const app: Record<string, unknown> = {}
Object.assign(globalThis, { app, client })

function Tasks() {
  const { data = [] } = hooks.useLiveList('tasks', { $sort: 'title' })
  const { data: other = [] } = hooks.useLiveList('tasks', { done: true })
  const { data: first } = hooks.useEntity('tasks', data[0]?.identifier)
  const { data: count } = hooks.useCount('tasks')
  const [create, change, remove] = [hooks.useCreate('tasks'), hooks.useChange('tasks'), hooks.useRemove('tasks')]
  Object.assign(app, { create, change, remove, first: first?.title, count, finished: other.length })
  return h('ul', {}, data.map((task) => h('li', { key: task._id }, task.title + (task.done ? ' done' : ''))))
}
function Chat() {
  const chat = hooks.useChat('${agent}')
  Object.assign(app, { chat })
  return h('p', { id: 'chat' }, chat.messages.map(({ role, content }) => role + ': ' + content).join(' / '))
}
function Account() {
  const { data: me } = hooks.useMe()
  const { data: workspaces = [] } = hooks.useWorkspaces({ enabled: !!me })
  const [signIn, signOut, signUp] = [hooks.useSignIn(), hooks.useSignOut(), hooks.useSignUp()]
  const upload = hooks.useUpload()
  const activate = hooks.useActivateWorkspace()
  Object.assign(app, { signIn, signOut, signUp, upload, activate, workspaces, me })
  return h(Fragment, {}, h('h1', {}, me === undefined ? 'loading' : (me?.username ?? 'nobody')), me && h(Tasks), me && h(Chat))
}
createRoot(document.getElementById('root')!).render(
  h(QueryClientProvider, { client: new QueryClient({ defaultOptions: { queries: { retry: false } } }) }, h(Account)),
)
`

const openApp = () => openProgram(server.url, program)
const signIn = `app.signIn.mutateAsync(${JSON.stringify({ username: 'grace', password: PASSWORD })}).then(() => {})`
const shows = (text: string) => `document.body.innerText.includes(${JSON.stringify(text)})`
const withoutRefusals = (errors: string[]) => errors.filter((each) => !/status of 4\d\d/.test(each))

describe.skipIf(!hasBrowser)('the hooks in a browser', () => {
  test('useMe shows who is signed in, and follows sign-ins and sign-outs, also in another tab', async () => {
    await using opened = await openApp()
    const { page, open } = opened
    await page.waitForFunction(shows('nobody'))
    const other = await open()
    await other.waitForFunction(shows('nobody'))
    await page.evaluate(signIn)
    await page.waitForFunction(shows('grace'))
    await other.waitForFunction(shows('grace'))
    await page.evaluate('app.signOut.mutateAsync().then(() => {})')
    await page.waitForFunction(shows('nobody'))
    await other.waitForFunction(shows('nobody'))
    expect(withoutRefusals(opened.errors)).toEqual([])
  })

  test('useLiveList shows what others create, change and remove, and all live lists share one stream', async () => {
    await using opened = await openApp()
    const { page } = opened
    const streams: string[] = []
    page.on('request', (request) => request.url().includes('/changes') && streams.push(request.url()))
    await page.waitForFunction(shows('nobody'))
    await page.evaluate(signIn)
    await page.waitForFunction('app.count !== undefined')
    await server.post('blueprints/tasks/entities', { identifier: 'live', title: 'Seen at once' })
    await page.waitForFunction(shows('Seen at once'))
    await server.call('PUT', '/api/blueprints/tasks/entities/live', { done: true })
    await page.waitForFunction(shows('Seen at once done'))
    await page.waitForFunction('app.finished === 1 && app.count === 1 && app.first === "Seen at once"')
    await server.call('DELETE', '/api/blueprints/tasks/entities/live')
    await page.waitForFunction('document.querySelectorAll("li").length === 0')
    expect(streams).toHaveLength(1)
    expect(withoutRefusals(opened.errors)).toEqual([])
  })

  test('useChange and useRemove show a change at once, and take it back when the server refuses it', async () => {
    await using opened = await openApp()
    const { page, context } = opened
    await server.post('blueprints/tasks/entities', { identifier: 'now', title: 'Now' })
    await page.waitForFunction(shows('nobody'))
    await page.evaluate(signIn)
    await page.waitForFunction(`${shows('Now')} && app.first === 'Now'`)
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await context.route('**/entities/now', async (route) => {
      if (route.request().method() === 'GET') return route.continue()
      await held
      await route.fulfill({ status: 409, contentType: 'application/json', body: '{"code":"NO","message":"No."}' })
    })
    await page.evaluate(
      `void app.change.mutateAsync({ identifier: 'now', change: { title: 'Later' } }).catch((error) => { app.refusal = error.code })`,
    )
    await page.waitForFunction(`${shows('Later')} && app.first === 'Later'`)
    release()
    await page.waitForFunction(`app.refusal === 'NO' && ${shows('Now')} && app.first === 'Now'`)
    await page.evaluate(`void app.remove.mutateAsync('now').catch(() => { app.refusal = 'twice' })`)
    await page.waitForFunction(`app.refusal === 'twice' && ${shows('Now')}`)
    await context.unroute('**/entities/now')
    await page.evaluate(`app.change.mutateAsync({ identifier: 'now', change: { title: 'Then' } }).then(() => {})`)
    await page.waitForFunction(shows('Then'))
    await page.evaluate(`app.remove.mutateAsync('now').then(() => {})`)
    await page.waitForFunction('document.querySelectorAll("li").length === 0')
    await page.evaluate(`app.create.mutateAsync({ title: 'Fresh' }).then(() => {})`)
    await page.waitForFunction(shows('Fresh'))
  })

  test('useChat shows an answer with the question, and goes on with the thread', async () => {
    await using opened = await openApp()
    const { page } = opened
    await page.waitForFunction(shows('nobody'))
    await page.evaluate(signIn)
    await page.waitForFunction('app.chat')
    await page.evaluate(`app.chat.send('one two').then(() => {})`)
    await page.waitForFunction(`!app.chat.isAnswering && ${shows('user: one two / assistant: one two')}`)
    await page.evaluate(`app.chat.send('three').then(() => {})`)
    await page.waitForFunction(shows('assistant: one two / user: three / assistant: three'))
    expect(await page.evaluate<unknown>('app.chat.error')).toBeUndefined()
    expect(await page.evaluate<number>('client.ai.threads.list().then((all) => all.length)')).toBe(1)
  })

  test('useUpload tells the progress, and useActivateWorkspace loads everything for another workspace', async () => {
    await using opened = await openApp()
    const { page } = opened
    await page.waitForFunction(shows('nobody'))
    await page.evaluate(signIn)
    await page.waitForFunction('app.me')
    await page.evaluate(
      `app.upload.mutateAsync(new Blob(['x'.repeat(2_000_000)])).then((file) => { app.size = file.size })`,
    )
    await page.waitForFunction('app.size === 2_000_000 && app.upload?.progress === 1')
    await page.evaluate(
      `client.workspaces.create({ name: 'Engines' }).then(({ _id }) => app.activate.mutateAsync(_id)).then(() => {})`,
    )
    await page.waitForFunction(`app.me.workspace?.name === 'Engines' && app.workspaces?.length === 1`)
  })
})
