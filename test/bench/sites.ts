// `bun test/bench/sites.ts [seconds]`: files of a site beside a plain Bun.serve that has the same files in memory or as Bun.file, by turns.
// The site has the usual log level.
import { mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'
import { measure } from './load'

const ROUNDS = 5
const FILES = {
  'index.html': Buffer.from(`<!doctype html><title>Home</title>${'<p>A paragraph of text.'.repeat(80)}`),
  'assets/index-B3kd92xQ.js': Buffer.from(crypto.getRandomValues(new Uint8Array(25_000)).toHex()),
  'assets/photo-Dk3jd9aP.jpg': Buffer.from(crypto.getRandomValues(new Uint8Array(120_000))),
  'video.mp4': Buffer.from(crypto.getRandomValues(new Uint8Array(4_000_000))),
}
const [, , mode = '4', folder = ''] = process.argv

if (mode === 'fill') await fill()
else if (mode === 'memory' || mode === 'file') servePlainly(mode)
else await compare(Number(mode))

async function fill() {
  await import('../../src/app')
  const { createTenant } = await import('../../src/tenancy/tenants')
  const { deploy } = await import('../../src/sites/deployments')
  const { packTar } = await import('../sites/fixtures')
  const tenant = await createTenant('bench', ['127.0.0.1'])
  const actor = { user: 'operator', roles: ['admin'], privileged: true, workspace: null, via: 'bearer', scopes: [] }
  const body = await packTar(...(Object.entries(FILES) as [string, Uint8Array][]))
  const headers = { 'content-type': 'application/x-tar' }
  await deploy({ ...tenant, actor } as never, {}, new Request('http://127.0.0.1/', { method: 'PUT', headers, body }))
  process.exit(0)
}

function servePlainly(mode: 'memory' | 'file') {
  const { port } = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url }) {
      const path = url.slice(url.indexOf('/', 8) + 1) as keyof typeof FILES
      const file = Bun.file(join(folder, path))
      const headers = { 'content-type': file.type, 'cache-control': 'public, no-cache' }
      return new Response(mode === 'memory' ? (FILES[path] as Uint8Array<ArrayBuffer>) : file, { headers })
    },
  })
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }))
}

async function compare(seconds: number) {
  const folder = createTempFolder('sites')
  const plain = join(folder, 'plain')
  mkdirSync(join(plain, 'assets'), { recursive: true })
  for (const [path, content] of Object.entries(FILES)) writeFileSync(join(plain, path), content)
  const env = { ...process.env, ATOLL_TENANTS: join(folder, 'tenants'), ATOLL_PORT: '0' }
  if (
    await Bun.spawn([process.execPath, import.meta.path, 'fill'], { env, stdio: ['ignore', 'inherit', 'inherit'] })
      .exited
  )
    throw new Error('It could not be filled.')
  const start = async (...command: string[]) => {
    const log = openSync(join(folder, 'server.log'), 'a')
    const child = Bun.spawn([process.execPath, ...command], { env, stdio: ['ignore', 'pipe', log] })
    process.once('exit', () => child.kill())
    const { value } = await child.stdout.getReader().read()
    return (JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }).url
  }
  const servers = {
    site: await start('src/main.ts', 'serve', '--json'),
    memory: await start(import.meta.path, 'memory', plain),
    file: await start(import.meta.path, 'file', plain),
  }
  for (const path of Object.keys(FILES)) {
    const rates: Record<string, number[]> = { site: [], memory: [], file: [] }
    for (let round = -1; round < ROUNDS; round++)
      for (const [name, url] of Object.entries(servers)) {
        const load = { url, method: 'GET' as const, paths: [`/${path}`], headers: {}, connections: 32 }
        const { perSecond, errors } = await measure({ ...load, seconds: round < 0 ? 1 : seconds })
        if (errors) throw new Error(`${name} failed ${errors} times.`)
        if (round >= 0) rates[name]!.push(perSecond)
      }
    const [site, memory, file] = Object.values(rates).map((each) => each.toSorted((a, b) => a - b)[ROUNDS >> 1]!)
    const ratio = (other: number) => (site! / other).toFixed(2)
    console.log(
      `${path}: ${Math.round(site!)}/s; plain from memory ${Math.round(memory!)}/s (${ratio(memory!)}), as Bun.file ${Math.round(file!)}/s (${ratio(file!)})`,
    )
  }
  process.exit(0)
}
