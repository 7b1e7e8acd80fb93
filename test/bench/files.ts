// `bun test/bench/files.ts [megabytes] [rounds]`: how fast a large file is uploaded and downloaded, compared with a plain server
// of the same runtime, which does not hash it, and how much memory the server takes for it.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'

const megabytes = Number(process.argv[2] ?? 1_024)
const rounds = Number(process.argv[3] ?? 3)

const at = createTempFolder()
const source = join(at, 'source')
{
  const writer = Bun.file(source).writer()
  const block = Buffer.alloc(1 << 20)
  for (let from = 0; from < block.length; from += 65_536) crypto.getRandomValues(block.subarray(from, from + 65_536))
  for (let n = 0; n < megabytes; n++) {
    block.writeUInt32LE(n)
    writer.write(block)
    await writer.flush()
  }
  await writer.end()
}

const PLAIN_SERVER = `
const path = process.argv.at(-1)
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', maxRequestBodySize: 2 ** 40, async fetch(request) {
  if (request.method === 'GET') return new Response(Bun.file(path))
  const writer = Bun.file(path).writer()
  for await (const chunk of request.body) {
    writer.write(chunk)
    await writer.flush()
  }
  await writer.end()
  if (request.url.endsWith('/synced')) require('node:fs').fsyncSync(require('node:fs').openSync(path))
  return new Response('{}')
} })
console.log(server.port)`
const plain = Bun.spawn([process.execPath, '-e', PLAIN_SERVER, join(at, 'plain')], { stdout: 'pipe' })
const { value: port } = await plain.stdout.getReader().read()
const plainUrl = `http://127.0.0.1:${new TextDecoder().decode(port).trim()}`

const residentMegabytes = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

/** Runs curl, and returns the rate, the body and by how much the memory of a process grew meanwhile. */
async function transfer(pid: number, args: string[]) {
  Bun.spawnSync(['sync']) // else what was written before would be synchronized with this
  const before = residentMegabytes(pid)
  let most = before
  const sampling = setInterval(() => {
    most = Math.max(most, residentMegabytes(pid))
  }, 10)
  const began = performance.now()
  const child = Bun.spawn(['curl', '-sS', '--fail-with-body', ...args], { stdout: 'pipe', stderr: 'inherit' })
  const body = await child.stdout.text()
  if (await child.exited) throw new Error(body)
  const rate = megabytes / ((performance.now() - began) / 1000)
  clearInterval(sampling)
  return { rate, body, growth: most - before }
}

const medianOf = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!
const limit = `${megabytes + 1}M`
const env = { ATOLL_RATE_LIMITS: 'off', ATOLL_FILE_LIMIT: limit, ATOLL_DURABILITY: 'full' }
await createTenantByCli({ at, env }, 'acme')
{
  await using server = await startAtoll({ at, env })
  const signedIn = await signIn(server.url, 'acme')
  const headers = Object.entries(signedIn).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const send = (url: string) => ['-X', 'POST', '-T', source, '-H', 'expect:', url]
  type Rates = { atoll: number; plain: number; synced?: number; growth: number }
  const uploads: Rates[] = []
  const downloads: Rates[] = []
  for (let round = 0; round < rounds; round++) {
    const plainUpload = await transfer(plain.pid, send(plainUrl))
    const syncedUpload = await transfer(plain.pid, send(`${plainUrl}/synced`))
    const upload = await transfer(server.pid, [...headers, ...send(`${server.url}/api/files?name=large.bin`)])
    uploads.push({ atoll: upload.rate, plain: plainUpload.rate, synced: syncedUpload.rate, growth: upload.growth })
    const { url } = JSON.parse(upload.body) as { url: string }
    const discard = ['-o', '/dev/null']
    const plainDownload = await transfer(plain.pid, [...discard, plainUrl])
    const download = await transfer(server.pid, [...headers, ...discard, `${server.url}${url}`])
    downloads.push({ atoll: download.rate, plain: plainDownload.rate, growth: download.growth })
  }
  const describe = (name: string, list: Rates[]) => {
    const [atoll, ...others] = (['atoll', 'plain', 'synced'] as const).map((key) =>
      medianOf(list.map((one) => one[key] ?? 0)),
    )
    const compared = others.map(
      (rate, n) =>
        rate &&
        `${(atoll! / rate).toFixed(2)} of ${rate.toFixed(0)} by a plain server${n ? ' that synchronizes it' : ''}`,
    )
    const growths = list.map(({ growth }) => growth.toFixed(0)).join(', ')
    console.log(
      `${name} of ${megabytes} MB: ${atoll!.toFixed(0)} MB/s, ${compared.filter(Boolean).join(', ')}; memory grew by ${growths} MB`,
    )
  }
  describe('upload', uploads)
  describe('download', downloads)
}
plain.kill()
rmSync(at, { recursive: true })
process.exit()
