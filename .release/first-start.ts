// Starts a server in a folder, asks it a few things, and stops it: `bun first-start.ts <folder> <command…>`.
import { readdirSync } from 'node:fs'

const [folder = '', ...command] = process.argv.slice(2)
const START_TIMEOUT_MS = 180_000 // an emulated processor is slow

const pickEnvironment = (...names: string[]) =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))

const began = performance.now()
const child = Bun.spawn([...command, 'serve'], {
  cwd: folder,
  env: { ATOLL_PORT: '0', ...pickEnvironment('LD_LIBRARY_PATH', 'BUN_BYTECODE_ORDER_OUT') },
  stdin: 'ignore',
  stdout: 'pipe',
  stderr: 'pipe',
  timeout: START_TIMEOUT_MS,
  killSignal: 'SIGKILL',
})
const logged = child.stderr.text()

function assert(isTrue: unknown, what: string): asserts isTrue {
  if (!isTrue) throw new Error(`${what}\n${printed}`)
}

let printed = ''
for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
  printed += chunk
  if (/set-up#\S+\n/.test(printed)) break
}
const seconds = ((performance.now() - began) / 1_000).toFixed(1)
const [, url, token] = /(http:\S+)\/admin\/set-up#(\S+)\n/.exec(printed) ?? []
if (!url) throw new Error(`The server printed no link to set it up.\n${printed}${await logged}`)
assert(token, 'The link to set the server up has no token.')

const ready = await fetch(`${url}/ready`)
assert(ready.status === 200, `GET /ready answered ${ready.status}: ${await ready.text()}`)
const page = await fetch(`${url}/admin`)
assert(page.status === 200, `GET /admin answered ${page.status}.`)
const setup = await fetch(`${url}/api/setup`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ token, username: 'ada', password: 'correct horse battery' }),
})
assert(setup.status < 300, `POST /api/setup answered ${setup.status}: ${await setup.text()}`)

child.kill('SIGTERM')
const code = await child.exited
assert(code === 0, `The server ended with ${child.signalCode ?? code}.\n${await logged}`)
const files = readdirSync(folder)
assert(files.join() === 'tenants', `The server left other files than its data: ${files}`)
console.log(`ready after ${seconds} s, set up, stopped with 0`)
