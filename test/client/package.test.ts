// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'bun'
import { COMPILES_CLEANLY, compileTypeScript } from '../blueprints/typegen/typescript-compiler'
import { hasBrowser } from '../fakes/browser'
import { createTempFolder, PASSWORD } from '../fakes/cli'
import { bundleForBrowser, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT } from './client-server'

setDefaultTimeout(180_000)

const root = resolve(import.meta.dir, '../..')
const MAX_COMPRESSED_BYTES = 12 << 10

async function runCommand(command: string[], cwd: string) {
  const child = Bun.spawn(command, { cwd, stderr: 'pipe' })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code) throw new Error(`${command.join(' ')}\n${out}${err}`)
  return out
}

/** What a program does with a client on each platform. It returns what it saw. */
const JOURNEY = `
export async function travel(createClient, { url, tenant, agent, webhookId, password }) {
  const client = createClient({ url, tenant })
  const username = 'user-' + crypto.randomUUID()
  const seen = {}
  await client.signUp({ username, password, fullName: 'Ada Lovelace' })
  seen.name = (await client.me()).fullName
  const tasks = client.entities('tasks')
  const identifier = 'journey-' + crypto.randomUUID()
  const controller = new AbortController()
  const changes = tasks.changes({ title: identifier }, { signal: controller.signal })
  seen.changes = [(await changes.next()).value.type]
  await tasks.create({ identifier, title: identifier, points: 5 })
  seen.changes.push((await changes.next()).value.entity.points)
  await changes.return()
  seen.count = await tasks.count({ title: identifier })
  seen.exported = []
  for await (const task of tasks.export({ title: identifier })) seen.exported.push(task.points)
  seen.imported = (await tasks.import([{ title: 'a' }, {}])).imported
  const file = await client.files.upload('Dear Ada, ü', { name: 'letter.txt' })
  seen.file = await (await client.files.read(file)).text()
  seen.link = await (await fetch((await client.files.token(file._id)).url)).text()
  const time = { description: 'The time', run: ({ zone }) => 'noon in ' + zone }
  const question = { messages: 'call get_time {"zone":"Oslo"}', tools: { get_time: time } }
  seen.parts = []
  for await (const part of client.ai.stream(agent, question)) seen.parts.push(part.text ?? part.result ?? part.type)
  seen.chat = (await client.ai.chat(agent, { messages: 'one two' })).text
  seen.greeting = (await client.webhooks.call(webhookId, { body: { name: 'Ada' } })).greeting
  seen.code = await tasks.get('nothing').then(() => 'none', (error) => error.code)
  await client.signOut()
  seen.signedOut = await client.me().then(() => 'none', (error) => error.code)
  return seen
}
`
const SEEN = {
  name: 'Ada Lovelace',
  changes: ['ready', 5],
  count: 1,
  exported: [5],
  imported: 1,
  file: 'Dear Ada, ü',
  link: 'Dear Ada, ü',
  parts: ['noon in Oslo', 'noon ', 'in ', 'Oslo', 'end'],
  chat: 'one two',
  greeting: 'Hello, Ada',
  code: 'ENTITY_NOT_FOUND',
  signedOut: 'UNAUTHENTICATED',
}

let server: ClientServer
let project: string
let packed: string[]
beforeAll(async () => {
  server = await startClientServer()
  project = createTempFolder()
  await runCommand([process.execPath, 'client/build.ts'], root)
  const tarball = join(project, 'client.tgz')
  await runCommand(
    [process.execPath, 'pm', 'pack', '--ignore-scripts', '--filename', tarball, '--quiet'],
    join(root, 'client'),
  )
  packed = (await runCommand(['tar', '-tzf', tarball], project)).trim().split('\n')
  const installed = join(project, 'node_modules/atoll-client')
  mkdirSync(installed, { recursive: true })
  await runCommand(['tar', '-xzf', tarball, '--strip-components=1', '-C', installed], project)
  await Bun.write(join(project, 'package.json'), '{"type": "module"}')
  await Bun.write(join(project, 'journey.js'), JOURNEY)
  const program = `import { createClient } from 'atoll-client'
    import { travel } from './journey.js'
    console.log(JSON.stringify(await travel(createClient, JSON.parse(process.argv[2]))))`
  await Bun.write(join(project, 'program.js'), program)
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

const journeyInput = () => ({
  url: server.url,
  tenant: TENANT,
  agent: server.agent._id,
  webhookId: server.webhookId,
  password: PASSWORD,
})

describe('the package of the client', () => {
  test('the package has the built files, its licence and nothing else', () => {
    const names = [
      'LICENSE',
      'README.md',
      'package.json',
      ...['hooks.d.ts', 'hooks.js', 'index.d.ts', 'index.js'].map((name) => `dist/${name}`),
    ]
    expect(packed.map((path) => path.replace('package/', '')).sort()).toEqual([...names].sort())
  })

  test('the client imports nothing, and is with its hooks at most 12 KB minified and compressed', async () => {
    const [client, hooks] = ['index', 'hooks'].map((name) => join(root, `client/dist/${name}.js`)) as [string, string]
    expect(await Bun.file(client).text()).not.toMatch(/^import |(?<![.\w])(require|import)\(/m)
    const measure = async (path: string) => {
      const { outputs } = await Bun.build({ entrypoints: [path], minify: true, external: ['*'] })
      return gzipSync(await outputs[0]!.arrayBuffer(), { level: 9 }).byteLength
    }
    expect((await measure(client)) + (await measure(hooks))).toBeLessThanOrEqual(MAX_COMPRESSED_BYTES)
  })

  test('the types of the package compile in strict mode, with blueprints and without', async () => {
    const types = (await server.call('GET', '/api/blueprints/types.d.ts')).body as string
    const use = `
      import { createClient, type AtollFile } from 'atoll-client'
      import { createHooks } from 'atoll-client/hooks'
      import type { Blueprints } from './atoll-types'
      const typed = createClient<Blueprints>({ url: '', tenant: 'acme', mode: 'cookie' })
      const untyped = createClient({ url: '' })
      export const { useList } = createHooks(typed)
      export async function use(): Promise<unknown[]> {
        const [task] = await typed.entities('tasks').list({ points: { $gt: 1 }, $populate: ['project'] })
        const title: string | undefined = task?.title
        // @ts-expect-error there is no such field
        await typed.entities('tasks').list({ titel: 'x' })
        // @ts-expect-error there is no such blueprint
        typed.entities('nothing')
        const [any] = await untyped.entities('anything').list({ size: 1, $sort: '-size' })
        const unknown: unknown = any?.['size']
        const file: AtollFile = await typed.files.upload('x')
        return [title, unknown, file, useList('tasks').data?.[0]?.title]
      }`
    const modules = join(project, 'node_modules')
    const paths = {
      'atoll-client': [join(modules, 'atoll-client/dist/index.d.ts')],
      'atoll-client/hooks': [join(modules, 'atoll-client/dist/hooks.d.ts')],
    }
    const packages = { '*': [`${root}/node_modules/@types/*`, `${root}/node_modules/*`] }
    const options = { lib: ['ES2022', 'DOM'], paths: { ...paths, ...packages }, skipLibCheck: false }
    expect(await compileTypeScript({ 'atoll-types.d.ts': types, 'use.ts': use }, options)).toMatchObject(
      COMPILES_CLEANLY,
    )
  })

  const PLATFORMS: [name: string, command: string[], isInstalled?: boolean][] = [
    ['Node', ['node']],
    ['Bun', [process.execPath]],
    ['Deno', ['deno', 'run', '--allow-net'], !!Bun.which('deno')],
  ]
  const installed = PLATFORMS.filter(([, , isInstalled = true]) => isInstalled)
  test.each(installed)('the installed package works in %s', async (_, command) => {
    const out = await runCommand([...command, 'program.js', JSON.stringify(journeyInput())], project)
    expect(JSON.parse(out)).toEqual(SEEN)
  })

  test.skipIf(!hasBrowser)('the installed package works in a browser', async () => {
    const program = `import { createClient } from './client'
      import { travel } from './journey'
      Object.assign(globalThis, { travel: (input) => travel(createClient, input) })`
    const client = await Bun.file(join(root, 'client/dist/index.js')).text()
    await using opened = await openProgram(
      server.url,
      await bundleForBrowser({ 'client.js': client, 'journey.js': JOURNEY, 'program.js': program }),
    )
    const input = { ...journeyInput(), url: opened.origin }
    expect(await opened.page.evaluate<unknown>(`travel(${JSON.stringify(input)})`)).toEqual(SEEN)
  })

  test('the hooks of the package find the client beside them', async () => {
    const folder = join(project, 'node_modules')
    for (const name of ['react', '@tanstack']) symlinkSync(join(root, 'node_modules', name), join(folder, name))
    const program = `import { createHooks } from 'atoll-client/hooks'
      import { createClient } from 'atoll-client'
      console.log(Object.keys(createHooks(createClient({ url: 'https://data.example.com' }))).length)`
    await Bun.write(join(project, 'hooks.js'), program)
    expect(Number(await runCommand([Bun.which('node')!, 'hooks.js'], project))).toBeGreaterThan(14)
  })
})
