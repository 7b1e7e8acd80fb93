// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { mayConfine, startAsNobody } from '../.release/smoke'
import { binaryPath } from './fakes/binary'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, runAtoll, startAtoll } from './fakes/cli'
import { errorOf } from './rejections'

setDefaultTimeout(60_000)

const root = resolve(import.meta.dir, '..')

/** Runs a curl command in a shell, or sends its request by fetch where curl is missing. */
async function run(line: string) {
  if (Bun.which('curl')) {
    const child = Bun.spawn(['sh', '-c', `${line} -s --max-time 10`], {
      env: { PATH: process.env.PATH },
      stdout: 'pipe',
    })
    const [out, code] = await Promise.all([child.stdout.text(), child.exited])
    expect([line, code]).toEqual([line, 0])
    return JSON.parse(out)
  }
  const header = [...line.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name!, value!])
  const [, body] = /-d '([^']+)'/.exec(line) ?? []
  const [, url = ''] = /'(http[^']+)'/.exec(line) ?? []
  const response = await fetch(url, { method: body ? 'POST' : 'GET', headers: Object.fromEntries(header), body })
  return response.json()
}

test('the compiled binary serves all features in an empty folder with an empty environment', async () => {
  const at = { at: createTempFolder(), env: { PATH: '', ATOLL_DURABILITY: 'full', ATOLL_LOG_LEVEL: 'info' } }

  const { json } = await runAtoll('version --json', at)
  expect(json.version).toBe((await Bun.file(resolve(root, 'package.json')).json()).version)
  expect(readdirSync(at.at)).toEqual([])

  await using server = await startAtoll(at, '--demo')
  await server.until(/curl .*-d .*\n/)
  const lines = server.readOutput().match(/^curl .*$/gm)!
  expect(lines).toHaveLength(3)
  const [me, rich, made] = [await run(lines[0]!), await run(lines[1]!), await run(lines[2]!)]
  expect(me).toMatchObject({ username: 'admin', roles: ['admin', 'user'], isPrivileged: true })
  expect(rich).toHaveLength(3)
  for (const contact of rich) {
    expect(contact.stage).toBe('customer')
    expect(Number(contact.worth)).toBeGreaterThanOrEqual(50_000)
  }
  const worth = rich.map((one: { worth: string }) => Number(one.worth))
  expect(worth).toEqual([...worth].sort((one, other) => other - one))
  expect(made).toMatchObject({ _id: expect.any(String), name: 'Grace Hopper', company: 'aurora', stage: 'lead' })

  const call = apiCaller(server.url)
  const headers = [...lines[0]!.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name!, value!])
  const write = apiCaller(server.url, Object.fromEntries(headers))
  // The binary compiles components by starting itself again.
  const component = { identifier: 'card', content: 'export const a: number = 1' }
  const compiled = await write('POST', '/api/components', component)
  expect([compiled.status, compiled.body.compiledContent?.js]).toEqual([201, 'export const a = 1;\n'])
  // The binary sanitizes HTML in a worker thread.
  const block = { name: 'hero', contentType: 'html', content: '<b onclick="x">a</b>' }
  const sanitized = await write('POST', '/api/blocks', block)
  expect([sanitized.status, sanitized.body.content]).toEqual([201, '<b>a</b>'])
  // The binary contains the library of passkeys, which is imported lazily.
  const callLocalhost = apiCaller(server.url, { ...Object.fromEntries(headers), host: 'localhost' })
  const passkeyOptions = await callLocalhost('POST', '/api/signin/passkey/options')
  expect([passkeyOptions.status, passkeyOptions.body.rpId]).toEqual([200, 'localhost'])
  // The binary runs lambdas in processes of itself.
  const code = 'export default async ({ body }: { body: string }) => new URL(body).host'
  const lambda = await write('POST', '/api/lambdas', { name: 'host', code })
  const executed = await write('POST', `/api/lambdas/${lambda.body._id}/execute`, { body: 'https://a.test:81/b' })
  expect([lambda.status, executed.body.result]).toEqual([201, 'a.test:81'])
  const endless = {
    name: 'endless',
    code: 'export default () => [].indexOf.call({ length: 2 ** 53 - 1 }, 1)',
    timeoutMs: 100,
  }
  const { body: never } = await write('POST', '/api/lambdas', endless)
  const ended = await write('POST', `/api/lambdas/${never._id}/execute`, {})
  expect(ended.body.error?.code).toBe('LAMBDA_TIMEOUT')

  const page = await call('GET', '/openapi')
  expect(page.headers.get('content-type')).toStartWith('text/html')
  const needed = [...(page.body as string).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  expect(needed.some((path) => path.endsWith('.js')) && needed.some((path) => path.endsWith('.css'))).toBeTrue()
  for (const path of needed) {
    const { status, headers, body } = await call('GET', path)
    expect([path, status]).toEqual([path, 200])
    expect(headers.get('content-type')).toMatch(path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
    expect(String(body).length).toBeGreaterThan(20)
  }
  expect((await call('GET', '/openapi/json')).body.paths).toHaveProperty('/api/signin')

  expect((await runAtoll('doctor --json', at)).json.checks).toContainEqual(
    expect.objectContaining({ check: 'tenant demo', ok: true }),
  )
  expect(await server.end('SIGTERM')).toBe(0)
  const log = (await server.logged)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(log.at(0)).toMatchObject({ level: 'info', event: 'start' })
  expect(log.at(-1)).toMatchObject({ level: 'info', event: 'stopped' })
  expect(log.filter(({ status }) => status === 200).length).toBeGreaterThan(2)
  expect(log.filter(({ level }) => level === 'error')).toEqual([])
  expect(readdirSync(at.at)).toEqual(['tenants'])
})

test('a plain user starts and sets up the compiled binary without a network, where only its folder can be written', async () => {
  if (!mayConfine())
    console.warn('SKIPPED: the plain user and the missing network, because this user is not root here.')
  const result = await startAsNobody(binaryPath())
  expect(result).toMatch(/^ready after [\d.]+ s, set up, stopped with 0/)
  if (mayConfine()) expect(result).toEndWith('without a network, on a read-only system')
})

test('the compiled binary runs no code that a bunfig.toml of its folder names', async () => {
  const at = createTempFolder()
  writeFileSync(join(at, 'bunfig.toml'), 'preload = ["./preloaded.ts"]\n')
  writeFileSync(join(at, 'preloaded.ts'), 'console.log("preloaded")\n')
  expect(await runAtoll('version --json', { at })).toMatchObject({ code: 0, out: expect.stringMatching(/^\{/) })
})

test('the smoke test of a release fails for a program that is no server', async () => {
  expect((await errorOf(startAsNobody(Bun.which('false')!))).message).toContain('printed no link to set it up')
})

test('the demo of `npm start` has a folder of its own, so that the first tenant made after it answers at localhost', async () => {
  const at = { at: createTempFolder() }
  const { scripts } = await Bun.file(join(root, 'package.json')).json()
  expect(scripts.start).toContain('--env-file=demo.env')
  const program = [process.execPath, `--env-file=${join(root, 'demo.env')}`, join(root, 'src/main.ts')]
  const demo = await startAtoll({ ...at, program }, '--demo')
  await demo.until(/curl .*-d .*\n/)
  await demo.end('SIGTERM')
  expect(readdirSync(at.at)).toEqual(['tenants-demo'])
  await createTenantByCli(at, 'acme')
  await using server = await startAtoll(at)
  const credentials = { username: 'root', password: PASSWORD, authType: 'oauth' }
  const signedIn = await apiCaller(server.url)('POST', '/api/signin', credentials)
  expect([signedIn.status, signedIn.body.payload?.user.username]).toEqual([200, 'root'])
})
