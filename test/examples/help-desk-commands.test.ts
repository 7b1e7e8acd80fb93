// engine: sqlite
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { waitUntil } from '../wait-until'
import { copyFiles, TENANT } from './help-desk-files'

setDefaultTimeout(180_000)

const ENV = { ATOLL_LOG_LEVEL: 'error', ATOLL_RATE_LIMITS: 'off', MODELS_TOKEN: 'sk-test' }

let path: string
beforeAll(async () => {
  const bin = join(createTempFolder(), 'bin')
  mkdirSync(bin)
  await Bun.write(join(bin, 'atoll'), `#!/bin/sh\nexec ${SOURCE_COMMAND.join(' ')} "$@"\n`)
  chmodSync(join(bin, 'atoll'), 0o755)
  path = `${bin}:${process.env.PATH}`
})

/** Starts a script of the example in a group of processes of its own. */
function runScript(script: string[], env: Record<string, string>) {
  const folder = copyFiles()
  const child = Bun.spawn(['npm', 'run', ...script], {
    ...{ cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    env: { ...ENV, PATH: path, HOME: folder, ...env },
  })
  const printed = { all: '' }
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never)) printed.all += chunk
  }
  const reading = Promise.all([collect(child.stdout), collect(child.stderr)])
  return {
    printed,
    finish: async () => {
      await Promise.all([child.exited, reading])
      return child.exitCode
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
      await Promise.all([child.exited, reading])
    },
  }
}

describe('the commands of the help desk', () => {
  test('npm run dev serves the page beside the API, with the definitions pushed and the client written', async () => {
    const [port, pagePort] = [await findFreePort(), await findFreePort()]
    const script = ['dev', '--', '--host', '127.0.0.1', '--port', `${pagePort}`, '--strictPort']
    await using dev = runScript(script, { ATOLL_PORT: `${port}` })
    const page = `http://127.0.0.1:${pagePort}`
    const fetchText = async (at: string) => (await fetch(page + at).catch(() => undefined))?.text()
    const isServed = () => fetchText('/').then((text) => text?.includes('Help desk'))
    await waitUntil(isServed, Boolean, 60_000).catch((error) => {
      throw new Error(`${error} ${dev.printed.all}`)
    })
    expect(dev.printed.all).toContain('created blueprint tickets')
    expect(await fetchText('/definitions/atoll-hooks.ts')).toContain('createHooks')
    const account = { username: 'ada', password: 'correct horse battery', email: 'ada@example.com' }
    const headers = { 'content-type': 'application/json', origin: page }
    const signedUp = await fetch(`${page}/api/signup`, { method: 'POST', headers, body: JSON.stringify(account) })
    expect(signedUp.status).toBe(201)
    const [cookie = ''] = signedUp.headers.getSetCookie()
    const workspace = await fetch(`${page}/api/workspaces`, {
      ...{ method: 'POST', body: '{"name": "Engines"}' },
      headers: { ...headers, cookie: cookie.split(';')[0]! },
    })
    expect(workspace.status).toBe(201) // a write by cookie, so the proxy keeps the host
  })

  test('npm run deploy brings the definitions and the page to a server, by a token for no more than that', async () => {
    const at = { at: createTempFolder(), program: SOURCE_COMMAND }
    await createTenantByCli(at, TENANT)
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, TENANT))
    const scopes = ['definitions:write', 'blueprints:read', 'sites:write']
    const { body } = await call('POST', '/api/me/api-tokens', { nickname: 'deploy', scopes })
    await using deploy = runScript(['deploy'], { ATOLL_URL: server.url, ATOLL_TOKEN: body.token })
    expect(await deploy.finish(), deploy.printed.all).toBe(0)
    expect((await call('GET', '/api/blueprints/tickets')).status).toBe(200)
    expect(await (await fetch(`${server.url}/people`, { headers: { accept: 'text/html' } })).text()).toContain(
      'Help desk',
    )
  })
})
