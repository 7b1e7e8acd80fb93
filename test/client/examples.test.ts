// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { createHooks } from '../../client/src/hooks'
import { createClient } from '../../client/src/index'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { toHooksSource } from '../../src/blueprints/typegen/client-source'
import { COMPILES_CLEANLY, compileTypeScript } from '../blueprints/typegen/typescript-compiler'
import { codeBlocksOf } from '../documents/markdown'
import { hasBrowser } from '../fakes/browser'
import { PASSWORD } from '../fakes/cli'
import { waitUntil } from '../wait-until'
import { bundleForBrowser, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT, USERS } from './client-server'
import { type Example, namesOfFunctions, readExamples } from './example-reader'

setDefaultTimeout(120_000)

const isHook = ({ file }: Example) => file.endsWith('hooks')
const all = readExamples()
const clientExamples = all.filter((example) => !isHook(example))
const hookExamples = all.filter(isHook)

/** Asks for the mail that the example needs before it begins. */
const MAIL_BEFORE: Record<string, { path: string; email: string } | undefined> = {
  'accounts.reset': { path: '/api/password/forgot', email: USERS.grace },
  'sign-in-methods.signInByLink': { path: '/api/signin/email', email: USERS.grace },
}
/** Examples that wait for the mail of another user than the one who signed up for them. */
const RECIPIENTS: Record<string, string | undefined> = {
  'accounts.reset': USERS.grace,
  'sign-in-methods.requestSignIn': USERS.grace,
  'sign-in-methods.signInByCode': USERS.grace,
  'sign-in-methods.signInByLink': USERS.grace,
}
const NEEDS_TOKEN = ['sign-in-methods.signInByLink']

/** What examples find around them. */
const createContext = (fixtures: object) => `
import { AtollError, createClient, type Blueprints } from './atoll'

declare global {
  var codeFromMail: () => Promise<string>
  var codeFromApp: (secret: string) => Promise<string>
  var tokenFromMail: () => Promise<string>
}
export const fixtures = ${JSON.stringify(fixtures)}
const password = ${JSON.stringify(PASSWORD)}
const admin = createClient<Blueprints>({ url: location.origin, tenant: fixtures.tenant, apiKey: fixtures.apiKey })

async function createContext(needsToken: boolean) {
  const client = createClient<Blueprints>({ url: location.origin, tenant: fixtures.tenant })
  const name = \`user\${crypto.randomUUID().slice(0, 8)}\`
  const { user } = await client.signUp({ username: name, password, email: \`\${name}@example.com\` })
  for (const { identifier } of await admin.entities('tasks').list()) await admin.entities('tasks').remove(identifier)
  const project = await admin.entities('projects').create({ name: 'Household' })
  await admin.entities('tasks').create({ identifier: 'milk', title: 'Buy milk', due: '2026-05-01', points: 3, project: project.identifier })
  return {
    client, admin, password, user,
    agent: fixtures.agent, plan: fixtures.plan, lambdaId: fixtures.lambdaId, webhookId: fixtures.webhookId,
    friend: { _id: fixtures.friend },
    workspace: await client.workspaces.create({ name: 'Engines' }),
    file: await client.files.upload('Dear Ada', { name: 'letter.txt' }),
    address: 'https://app.example.com/signed-in',
    askForCode: codeFromMail, codeFromMail, codeFromApp,
    token: needsToken ? await tokenFromMail() : '',
  }
}
export type Context = Awaited<ReturnType<typeof createContext>>
`
const CONTEXT_NAMES =
  'client, admin, password, agent, plan, lambdaId, webhookId, friend, workspace, file, address, askForCode, codeFromMail, codeFromApp, token'

const toProgram = (fixtures: object) => `${createContext(fixtures)}
const examples: Record<string, (context: Context) => Promise<unknown>> = {
${clientExamples.map(({ name, code }) => `${JSON.stringify(name)}: async ({ ${CONTEXT_NAMES} }) => {\n{\n${code}\n}\n},`).join('\n')}
}
Object.assign(globalThis, {
  run: async (name: string, needsToken: boolean) => examples[name]!(await createContext(needsToken)),
})
`

const toHooksProgram = (fixtures: object) => `${createContext(fixtures)}
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import { createHooks } from './hooks'
const client = createClient<Blueprints>({ url: location.origin, tenant: fixtures.tenant })
const { ${hookExamples
  .map(({ member }) => member)
  .filter((member) => member !== 'createHooks')
  .join(', ')} } = createHooks(client)
const components: Record<string, () => null> = {
${hookExamples.map(({ name, code }) => `${JSON.stringify(name)}: () => {\n{\n${code}\n}\nuseEffect(() => void Object.assign(globalThis, { shown: ${JSON.stringify(name)} }))\nreturn null\n},`).join('\n')}
}
const root = createRoot(document.getElementById('root')!)
const queryClient = new QueryClient()
Object.assign(globalThis, {
  prepare: () => createContext(false),
  show: (name: string) => root.render(createElement(QueryClientProvider, { client: queryClient }, createElement(components[name]!, { key: name }))),
})
`

let server: ClientServer
let fixtures: object
beforeAll(async () => {
  server = await startClientServer()
  const { apiKey, agent, plan, lambdaId, webhookId } = server
  const friend = (await server.call('GET', '/api/users?username=grace&exact=true')).body[0]._id
  fixtures = { tenant: TENANT, apiKey, agent, plan, lambdaId, webhookId, friend }
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

const BROWSER = {
  lib: ['ES2022', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
  noUnusedLocals: false,
  noUnusedParameters: false,
  skipLibCheck: true,
}
const PACKAGES = {
  typeRoots: [`${process.cwd()}/node_modules/@types`],
  paths: { '*': [`${process.cwd()}/node_modules/@types/*`, `${process.cwd()}/node_modules/*`] },
}

describe('the examples in the comments of the client', () => {
  test('every function of a client has an example, and every example belongs to a function', () => {
    const client = createClient({ url: 'https://data.example.com' }) as object as {
      entities(key: string): object
      charts(key: string): object
    }
    const functions = [client, client.entities('tasks'), client.charts('tasks')].flatMap(namesOfFunctions)
    const documented = clientExamples.map(({ member }) => member)
    expect(documented.sort()).toEqual([...functions, 'AtollError', 'createClient'].sort())
  })

  test('every hook has an example', () => {
    const hooks = createHooks(createClient({ url: 'https://data.example.com' }))
    expect(hookExamples.map(({ member }) => member).sort()).toEqual(['createHooks', ...Object.keys(hooks)].sort())
  })

  test('all examples compile in strict mode', async () => {
    const files = { 'atoll.ts': server.atoll, 'program.ts': toProgram(fixtures) }
    expect(await compileTypeScript(files, BROWSER)).toMatchObject(COMPILES_CLEANLY)
  })

  test('all examples of hooks compile in strict mode', async () => {
    const files = {
      'atoll.ts': server.atoll,
      'hooks.ts': toHooksSource('./atoll'),
      'program.ts': toHooksProgram(fixtures),
    }
    expect(await compileTypeScript(files, { ...BROWSER, ...PACKAGES })).toMatchObject(COMPILES_CLEANLY)
  })
})

/** What the blocks of the guide find around them. */
const GUIDE_CONTEXT = `
import type { Client, TokenStorage } from './atoll'
import type { createHooks } from './hooks'
type Hooks = ReturnType<typeof createHooks<import('./atoll').Blueprints>>
declare global {
  const client: Client
  const input: { files: FileList | null }
  const askForCode: () => Promise<string>
  const useLiveList: Hooks['useLiveList']
  const useChange: Hooks['useChange']
}
`
const ASYNC_STORAGE = `declare module '@react-native-async-storage/async-storage' {
  const storage: { getItem(key: string, callback?: () => void): Promise<string | null>; setItem(key: string, value: string): Promise<void>; removeItem(key: string): Promise<void> }
  export default storage
}
`

/** Returns a block of the guide as a module. */
function toModule(code: string) {
  const imports = code.match(/^import .*$/gm) ?? []
  const body = code.replace(/^import .*$/gm, '').replace(/^export /gm, '')
  return `${imports.join('\n')}\nexport async function block() {\n${body}\n}\n`
}

test('every block of TypeScript in the guide compiles in strict mode', async () => {
  const guide = await Bun.file('docs/guides/typescript-client.md').text()
  const blocks = codeBlocksOf(guide).filter(({ info }) => info === 'ts')
  expect(blocks.length).toBeGreaterThan(12)
  const modules = { 'atoll.ts': server.atoll, 'hooks.ts': toHooksSource('./atoll') }
  const aliases = { 'atoll-types.ts': `export * from './atoll'`, 'atoll-hooks.ts': `export * from './hooks'` }
  const context = {
    'context.ts': GUIDE_CONTEXT,
    'storage.d.ts': ASYNC_STORAGE,
    'atoll-client.ts': `export * from './atoll'`,
  }
  const files = Object.fromEntries(
    blocks.map(({ code, line }) => [`line-${line}.ts`, toModule(code.replace("'atoll-client'", "'./atoll-client'"))]),
  )
  const result = await compileTypeScript({ ...modules, ...aliases, ...context, ...files }, { ...BROWSER, ...PACKAGES })
  expect(result).toMatchObject(COMPILES_CLEANLY)
})

describe.skipIf(!hasBrowser)('the examples in a browser', () => {
  /** Returns the text of the newest mail after a time that fits. */
  const findInMail = async (since: string, pattern: RegExp, recipient = '') => {
    let found: string | undefined
    await waitUntil(async () => {
      const mails: { created: string; to: string; text: string | null }[] = (
        await server.call('GET', '/api/mails?limit=20')
      ).body
      const texts = mails
        .filter(({ created, to }) => created > since && to.includes(recipient))
        .map(({ text }) => text ?? '')
      found = texts.map((text) => pattern.exec(text)?.[1]).find(Boolean)
      return !!found
    })
    return found!
  }
  let startedAt = ''
  let recipient: string | undefined
  const prepare = async (page: Page) => {
    await page.exposeFunction('codeFromApp', (secret: string) => codeAt(decodeBase32(secret), stepAt(Date.now())))
    await page.exposeFunction('codeFromMail', () => findInMail(startedAt, /^(\d{8})$/m, recipient))
    await page.exposeFunction('tokenFromMail', () => findInMail(startedAt, /(?:token=|#)([\w-]{43})/, recipient))
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
        ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
      },
    })
  }

  let opened: ReturnType<typeof openProgram> | undefined
  let openedHooks: ReturnType<typeof openProgram> | undefined
  const openClient = async () => {
    const files = { 'atoll.ts': server.atoll, 'program.ts': toProgram(fixtures) }
    opened ??= bundleForBrowser(files).then((program) => openProgram(server.url, program, prepare))
    return opened
  }
  const openHooks = async () => {
    const files = {
      'atoll.ts': server.atoll,
      'hooks.ts': toHooksSource('./atoll'),
      'program.ts': toHooksProgram(fixtures),
    }
    openedHooks ??= bundleForBrowser(files).then((program) => openProgram(server.url, program, prepare))
    return openedHooks
  }
  afterAll(async () => {
    await (await opened)?.[Symbol.asyncDispose]()
    await (await openedHooks)?.[Symbol.asyncDispose]()
  })

  test.each(clientExamples.map(({ name }) => name))('the example of %s runs', async (name) => {
    const { page } = await openClient()
    startedAt = new Date(Date.now() - 1).toISOString()
    const mail = MAIL_BEFORE[name]
    recipient = RECIPIENTS[name]
    if (mail) expect((await server.anonymous('POST', mail.path, { email: mail.email })).status).toBe(200)
    const run = `run(${JSON.stringify(name)}, ${NEEDS_TOKEN.includes(name)})`
    await page.evaluate(
      `${run}.then(() => undefined, (error) => Promise.reject(new Error([error.code, error.message, JSON.stringify(error.details), error.stack].join(' '))))`,
    )
  })

  test.each(hookExamples.map(({ name }) => name))('the example of %s renders without an error', async (name) => {
    const { page, errors } = await openHooks()
    errors.length = 0
    await page.evaluate('prepare().then(() => undefined)')
    await page.evaluate(`show(${JSON.stringify(name)})`)
    await page.waitForFunction(`globalThis.shown === ${JSON.stringify(name)}`)
    await page.waitForLoadState('networkidle')
    expect(errors).toEqual([])
  })
})
