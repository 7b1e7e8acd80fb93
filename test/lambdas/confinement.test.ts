// engine: sqlite
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

/** A script that confines itself, tries all that is forbidden then, and prints each outcome. */
const probe = (files: string[], port: number) => `
import { confineProcess } from '${import.meta.dir}/../../src/core/confinement'
import { readFileSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { spawnSync } from 'node:child_process'
const wasReadable = ${JSON.stringify(files)}.map((file) => readFileSync(file).length > 0)
const missing = confineProcess()
const outcomeOf = (act) => { try { return act() ?? 'done' } catch (error) { return error.code ?? String(error) } }
const inThread = new Worker(URL.createObjectURL(new Blob([\`
  const { readFileSync } = process.getBuiltinModule('node:fs')
  try { readFileSync('/etc/passwd'); postMessage('read') } catch ({ code }) { postMessage(code) }\`])))
const report = {
  missing, wasReadable,
  reads: ${JSON.stringify(files)}.map((file) => outcomeOf(() => readFileSync(file).length)),
  lists: outcomeOf(() => readdirSync('/').length),
  writes: outcomeOf(() => writeFileSync('/tmp/atoll-probe-' + process.pid, 'x')),
  removes: outcomeOf(() => unlinkSync(${JSON.stringify(files[0])})),
  runs: outcomeOf(() => spawnSync('/bin/true').error?.code),
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

describe.skipIf(!isLinux)('the confinement of a sandbox process', () => {
  const child = new SandboxProcess()
  afterAll(() => child.kill())
  const readProcFile = (file: string) => readFileSync(`/proc/${child.pid}/${file}`, 'utf8')

  test('a confined process runs lambdas in the time zone of the system', async () => {
    expect(await child.ready).toBeTrue()
    const job = { js: 'export default () => new Date().getTimezoneOffset()', request: '{}', env: '{}' }
    const listener = { call: async () => ({ ok: true, answer: 'null' }), line() {} }
    const ending = await child.run({ ...job, limits: { time: 20_000, memory: 1 << 20 } }, listener)
    // The time zone was read before the process lost its access to files.
    expect(ending).toEqual({ value: `${systemOffset()}`, format: 'value' })
  })

  test('each thread of a sandbox process has no_new_privs and a seccomp filter', async () => {
    await child.ready
    for (const task of readdirSync(`/proc/${child.pid}/task`)) {
      const status = readProcFile(`task/${task}/status`)
      expect(status).toMatch(/^NoNewPrivs:\s*1$/m)
      expect(status).toMatch(/^Seccomp:\s*2$/m)
    }
  })

  test.skipIf(!isRoot)(
    'a sandbox process of a server that runs as root has the user nobody and no capabilities',
    async () => {
      await child.ready
      const status = readProcFile('status')
      for (const name of ['Uid', 'Gid']) expect(status).toMatch(new RegExp(`^${name}:(\\s+${NOBODY}){4}$`, 'm'))
      expect(status).toMatch(/^Groups:\s*$/m)
      for (const name of ['CapPrm', 'CapEff']) expect(status).toMatch(new RegExp(`^${name}:\\s*0+$`, 'm'))
    },
  )

  test('a sandbox process writes no files and no core dumps, opens at most 64 files, and has neither our folder nor environment', async () => {
    await child.ready
    const limits = readProcFile('limits')
    for (const [name, limit] of [
      ['file size', 0],
      ['core file size', 0],
      ['open files', 64],
    ] as const)
      expect(limits).toMatch(new RegExp(`^Max ${name}\\s+${limit}\\s+${limit}\\s`, 'm'))
    expect(readlinkSync(`/proc/${child.pid}/cwd`)).toBe('/')
    expect(readProcFile('environ')).not.toMatch(/ATOLL_|HOME=|PATH=|USER=/)
  })

  test('a sandbox process reads no files, starts no programs and opens no connections', async () => {
    const [folder, registry] = [createTempFolder(), join(config.ATOLL_TENANTS, 'registry.db')]
    const [script, readableFile] = [join(folder, 'probe.ts'), join(folder, 'open.txt')]
    writeFileSync(readableFile, 'readable', { mode: 0o666 })
    writeFileSync(registry, 'x', { flag: 'a' })
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    writeFileSync(script, probe([readableFile, registry], server.port))
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

/** The offset of the system, whatever zone the tests are run in. */
const systemOffset = () =>
  Number(Bun.spawnSync([process.execPath, '-e', 'console.log(new Date().getTimezoneOffset())'], { env: {} }).stdout)
