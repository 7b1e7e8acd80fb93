import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../../src/config'
import { SandboxProcess } from '../../src/lambdas/sandbox/sandbox-process'
import { createTempFolder } from '../fakes/cli'

setDefaultTimeout(60_000)

const isLinux = process.platform === 'linux'
if (!isLinux) console.warn('SKIPPED: sandbox processes are confined on Linux only.')
const isRoot = process.getuid?.() === 0
const NOBODY = 65_534

/** What becomes of a process that tries all this once it was confined. Each attempt tells its outcome. */
const probe = (files: string[], port: number) => `
import { confineProcess } from '${import.meta.dir}/../../src/lambdas/sandbox/confinement'
import { readFileSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { spawnSync } from 'node:child_process'
const wasReadable = ${JSON.stringify(files)}.map((file) => readFileSync(file).length > 0)
const missing = confineProcess()
const outcome = (act) => { try { return act() ?? 'done' } catch (error) { return error.code ?? String(error) } }
const inThread = new Worker(URL.createObjectURL(new Blob([\`
  const { readFileSync } = process.getBuiltinModule('node:fs')
  try { readFileSync('/etc/passwd'); postMessage('read') } catch ({ code }) { postMessage(code) }\`])))
const report = {
  missing, wasReadable,
  reads: ${JSON.stringify(files)}.map((file) => outcome(() => readFileSync(file).length)),
  lists: outcome(() => readdirSync('/').length),
  writes: outcome(() => writeFileSync('/tmp/atoll-probe-' + process.pid, 'x')),
  removes: outcome(() => unlinkSync(${JSON.stringify(files[0])})),
  runs: outcome(() => spawnSync('/bin/true').error?.code),
  connects: await new Promise((resolve) => {
    try { connect(${port}, '127.0.0.1', () => resolve('done')).on('error', ({ code }) => resolve(code)) } catch ({ code }) { resolve(code) }
  }),
  inThread: await new Promise((resolve) => { inThread.onmessage = ({ data }) => resolve(data) }),
  inPool: await Bun.file('/etc/passwd').text().then(() => 'read', ({ code }) => code),
  user: process.getuid(),
}
process.stdout.write(JSON.stringify(report))
process.exit()
`

describe.skipIf(!isLinux)('a sandbox process', () => {
  const child = new SandboxProcess()
  afterAll(() => child.kill())
  const about = (file: string) => readFileSync(`/proc/${child.pid}/${file}`, 'utf8')

  test('runs lambdas', async () => {
    expect(await child.ready).toBeTrue()
    const job = { js: 'export default () => new Date().getTimezoneOffset()', request: '{}', env: '{}' }
    const listener = { call: async () => ({ ok: true, answer: 'null' }), line() {} }
    const ending = await child.run({ ...job, bounds: { time: 20_000, memory: 1 << 20 } }, listener)
    // The zone is known, though no file tells of it any more.
    expect(ending).toEqual({ value: `${systemOffset()}`, shape: 'value' })
  })

  test('has, in each of its threads, no way to new privileges, and a filter of system calls', async () => {
    await child.ready
    for (const task of readdirSync(`/proc/${child.pid}/task`)) {
      const status = about(`task/${task}/status`)
      expect(status).toMatch(/^NoNewPrivs:\s*1$/m)
      expect(status).toMatch(/^Seccomp:\s*2$/m)
    }
  })

  test.skipIf(!isRoot)('is nobody, where the server is root', async () => {
    await child.ready
    const status = about('status')
    for (const name of ['Uid', 'Gid']) expect(status).toMatch(new RegExp(`^${name}:(\\s+${NOBODY}){4}$`, 'm'))
    expect(status).toMatch(/^Groups:\s*$/m)
    for (const name of ['CapPrm', 'CapEff']) expect(status).toMatch(new RegExp(`^${name}:\\s*0+$`, 'm'))
  })

  test('writes no file, dumps no core, opens few descriptors, and has none of our folder or environment', async () => {
    await child.ready
    const limits = about('limits')
    for (const [name, most] of [
      ['file size', 0],
      ['core file size', 0],
      ['open files', 64],
    ] as const)
      expect(limits).toMatch(new RegExp(`^Max ${name}\\s+${most}\\s+${most}\\s`, 'm'))
    expect(readlinkSync(`/proc/${child.pid}/cwd`)).toBe('/')
    expect(about('environ')).not.toMatch(/ATOLL_|HOME=|PATH=|USER=/)
  })

  test('reads no file of a tenant, starts no program, and connects to nobody', async () => {
    const [folder, registry] = [createTempFolder(), join(config.ATOLL_TENANTS, 'registry.db')]
    const [script, open] = [join(folder, 'probe.ts'), join(folder, 'open.txt')]
    writeFileSync(open, 'for everybody', { mode: 0o666 })
    writeFileSync(registry, 'x', { flag: 'a' })
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    writeFileSync(script, probe([open, registry], server.port))
    const { stdout, stderr } = Bun.spawnSync([process.execPath, script], { stdout: 'pipe', stderr: 'pipe' })
    server.stop(true)
    const report = JSON.parse(stdout.toString() || `"${stderr}"`)
    expect(report.wasReadable).toEqual([true, true])
    if (report.missing.length)
      return console.warn(`SKIPPED: this system does not let go of ${report.missing.join(', ')}.`)
    const refused = expect.stringMatching(/^(EPERM|EACCES)$/)
    expect(report).toMatchObject({
      ...{ reads: [refused, refused], lists: refused, writes: refused, removes: refused, runs: refused },
      ...{ inThread: refused, inPool: refused, user: isRoot ? NOBODY : process.getuid?.() },
    })
    expect(report.connects).not.toBe('done')
  })
})

/** The system's, whatever zone the tests are run in. */
const systemOffset = () =>
  Number(Bun.spawnSync([process.execPath, '-e', 'console.log(new Date().getTimezoneOffset())'], { env: {} }).stdout)
