// engine: sqlite
import { expect, test } from 'bun:test'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createTempFolder, SOURCE_COMMAND } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { waitUntil } from '../wait-until'

/** Starts `atoll dev` in a folder, for `await using`: it ends with the block. */
async function startDev(at: string, ...options: string[]) {
  const port = await findFreePort()
  const child = Bun.spawn([...SOURCE_COMMAND, 'dev', 'definitions', ...options], {
    cwd: at,
    env: {
      PATH: process.env.PATH,
      ATOLL_PORT: `${port}`,
      ATOLL_LOG_LEVEL: 'error',
      ATOLL_RATE_LIMITS: 'off',
      TOKEN: 'sk',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never)) printed += chunk
  }
  const reading = Promise.all([collect(child.stdout), collect(child.stderr)])
  return {
    read: async (key: string) => (await fetch(`http://127.0.0.1:${port}/api/configurations/${key}`)).json(),
    waitFor: (text: string) =>
      waitUntil(
        () => printed,
        (all) => all.includes(text),
        30_000,
      ),
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
      await reading
    },
  }
}

test('dev pushes what is saved, tells errors without ending, and writes types, a client and hooks', async () => {
  const at = createTempFolder()
  const save = (path: string, content: object | string) =>
    Bun.write(join(at, 'definitions', path), typeof content === 'string' ? content : JSON.stringify(content))
  await save('blueprints/books.json', { name: 'Books', fields: [{ key: 'title', type: 'string' }] })
  const local = { apiUrl: 'http://127.0.0.1:11434/v1' }
  await save('connections/Models.json', { kind: 'openai', metadata: local, authentication: { token: `\${TOKEN}` } })
  await using dev = await startDev(at, '--prune', '--hooks')
  await dev.waitFor('created blueprint books')
  await dev.waitFor('created connection Models')
  await dev.waitFor('Watching definitions for the tenant "main".')
  expect(await Bun.file(join(at, 'definitions/atoll.d.ts')).text()).toContain('title?: string')
  expect(await Bun.file(join(at, 'definitions/atoll-client.ts')).text()).toContain('createClient')
  expect(await Bun.file(join(at, 'definitions/atoll-hooks.ts')).text()).toContain('from "./atoll-client"')

  await save('configurations/nav.json', { public: true, metadata: { n: 1 } })
  await dev.waitFor('created configuration nav')
  expect(await dev.read('nav')).toMatchObject({ metadata: { n: 1 } })

  await save('configurations/nav.json', '{ broken')
  await dev.waitFor('error: "configurations/nav.json" is not a JSON object.')
  await save('configurations/nav.json', { public: true, metadata: { n: 2 } })
  await dev.waitFor('changed configuration nav: changes metadata')
  expect(await dev.read('nav')).toMatchObject({ metadata: { n: 2 } })

  await save('connections/Broken.json', { kind: 'openai', metadata: { apiUrl: 'nowhere' } })
  await save('blueprints/authors.json', { name: 'Authors', fields: [] })
  await dev.waitFor('error: The connection "Broken": Write a whole address')
  expect(await Bun.file(join(at, 'definitions/atoll.d.ts')).text()).not.toContain('Authors')
  await rm(join(at, 'definitions/connections/Broken.json'))
  await waitUntil(async () => (await Bun.file(join(at, 'definitions/atoll.d.ts')).text()).includes('Authors'))

  await save('blueprints/books.json', { name: 'Books', fields: [{ key: 'pages', type: 'number' }] })
  await dev.waitFor('adds the field "pages"')
  await waitUntil(async () => (await Bun.file(join(at, 'definitions/atoll.d.ts')).text()).includes('pages?: number'))
  await rm(join(at, 'definitions/configurations/nav.json'))
  await dev.waitFor('removed configuration nav')
}, 120_000)
