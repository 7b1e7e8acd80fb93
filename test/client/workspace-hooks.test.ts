// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { toHooksSource } from '../../src/blueprints/typegen/client-source'
import { hasBrowser } from '../fakes/browser'
import { PASSWORD } from '../fakes/cli'
import { bundleForBrowser, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT, USERS } from './client-server'

setDefaultTimeout(120_000)

let server: ClientServer
let program: string
beforeAll(async () => {
  server = await startClientServer()
  const files = { 'atoll.ts': server.atoll, 'hooks.ts': toHooksSource('./atoll') }
  program = await bundleForBrowser({ ...files, 'program.ts': PROGRAM })
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

/** An application with the session in a cookie, whose state and functions the test reads from `app`. */
const PROGRAM = `
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement as h } from 'react'
import { createRoot } from 'react-dom/client'
import { createClient } from './atoll'
import { createHooks } from './hooks'

const client = createClient({ url: location.origin, tenant: '${TENANT}', mode: 'cookie' })
const hooks = createHooks(client)
const app: Record<string, unknown> = {}
Object.assign(globalThis, { app })

function App() {
  const { data: me } = hooks.useMe()
  const settings = { enabled: !!me }
  const { data: workspace } = hooks.useWorkspace(me?.workspace?._id)
  Object.assign(app, {
    me,
    workspace,
    plans: hooks.usePlans().data,
    subscription: hooks.useSubscription(settings).data,
    agents: hooks.useAgents(settings).data,
    invitations: hooks.useInvitations(settings).data,
    signIn: hooks.useSignIn(),
    createWorkspace: hooks.useCreateWorkspace(),
    activate: hooks.useActivateWorkspace(),
    invite: hooks.useInvite(),
    removeInvite: hooks.useRemoveInvite(),
    answer: hooks.useAnswerInvitation(),
    changeMember: hooks.useChangeMember(),
    removeMember: hooks.useRemoveMember(),
    checkout: hooks.useCheckout(),
  })
  return h('h1', {}, me === undefined ? 'loading' : (me?.username ?? 'nobody'))
}
createRoot(document.getElementById('root')!).render(h(QueryClientProvider, { client: new QueryClient() }, h(App)))
`
const mutate = (page: Page, name: string, input: unknown) =>
  page.evaluate(`app.${name}.mutateAsync(${JSON.stringify(input)}).then((result) => { app.result = result })`)

async function openApp(username?: keyof typeof USERS) {
  const opened = await openProgram(server.url, program)
  await opened.page.waitForFunction('app.me === null')
  if (username) {
    await mutate(opened.page, 'signIn', { username, password: PASSWORD })
    await opened.page.waitForFunction('app.me')
  }
  return opened
}

describe.skipIf(!hasBrowser)('hooks for people and payments in a browser', () => {
  test('the page of a guest with the session in a cookie asks for everything once', async () => {
    await using opened = await openProgram(server.url, program, async (page) => {
      await page.addInitScript(
        'globalThis.asked = []; const ask = fetch; globalThis.fetch = (...args) => { asked.push(args[0]); return ask(...args) }',
      )
    })
    await opened.page.waitForFunction('app.me === null && app.plans')
    await opened.page.waitForLoadState('networkidle')
    const paths = (await opened.page.evaluate<string[]>('asked')).map((url) => new URL(url).pathname)
    expect(paths.sort()).toEqual(['/api/me', '/api/plans/public'])
  })

  test('an invited user accepts, gets other roles, and is removed; an invite is taken back', async () => {
    await using owner = await openApp('grace')
    await using guest = await openApp('hopper')
    await mutate(owner.page, 'createWorkspace', { name: 'Engines' })
    const workspace = await owner.page.evaluate<string>('app.result._id')
    await mutate(owner.page, 'activate', workspace)
    await owner.page.waitForFunction('app.workspace?.members.length === 1')
    await mutate(owner.page, 'invite', { workspace, email: 'nobody@example.com' })
    await owner.page.waitForFunction('app.workspace?.invites.length === 1')
    await mutate(owner.page, 'removeInvite', { workspace, invite: await owner.page.evaluate('app.result._id') })
    await owner.page.waitForFunction('app.workspace?.invites.length === 0')
    await mutate(owner.page, 'invite', { workspace, email: USERS.hopper, roles: ['member'] })

    await guest.page.reload()
    await guest.page.waitForFunction('app.invitations?.length === 1')
    expect(await guest.page.evaluate<string>('app.invitations[0].workspace.name')).toBe('Engines')
    await mutate(guest.page, 'answer', { workspace, answer: 'accept' })
    await guest.page.waitForFunction('app.invitations?.length === 0')

    await owner.page.reload()
    await owner.page.waitForFunction('app.workspace?.members.length === 2')
    const user = await owner.page.evaluate<string>('app.workspace.members.find(({ user }) => user !== app.me._id).user')
    await mutate(owner.page, 'changeMember', { workspace, user, roles: ['admin'] })
    await owner.page.waitForFunction('app.workspace?.members.every(({ roles }) => roles.includes("admin"))')
    await mutate(owner.page, 'removeMember', { workspace, user })
    await owner.page.waitForFunction('app.workspace?.members.length === 1')
  })

  test('useCheckout goes to the page of a provider, and shows what is active at once', async () => {
    await using opened = await openApp('hopper')
    await opened.page.waitForFunction('app.plans && app.subscription === null && app.agents?.length === 1')
    const planId = await opened.page.evaluate<string>('app.plans[0]._id')
    await opened.context.route('**/api/checkout', async (route) => {
      expect(route.request().postDataJSON()).toMatchObject({ planId, successUrl: opened.page.url() })
      await route.fulfill({
        json: { subscriptionId: 'x', checkoutUrl: `${opened.origin}/program/paid`, clientToken: null },
      })
    })
    await Promise.all([
      opened.page.waitForURL('**/program/paid'),
      opened.page.evaluate(`void app.checkout.mutateAsync(${JSON.stringify({ planId, billingCycle: 'monthly' })})`),
    ])
    await opened.context.unroute('**/api/checkout')
    await opened.page.waitForFunction('app.plans && app.subscription === null')
    await mutate(opened.page, 'checkout', { planId, billingCycle: 'monthly', couponCode: 'FREE' })
    await opened.page.waitForFunction('app.subscription?.status === "active"')
  })
})
