// `bun test/bench/thumbnails.ts [sqlite|postgres] [pictures] [rounds]`: how long a tenant's reads by id take while another tenant
// asks for thumbnails of many pictures of 12 megapixels at once, compared with reads alone.
import { rmSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { makePng } from '../files/pictures'
import { type Figures, type Load, measure } from './load'
import { product, productsBlueprint } from './sample-data'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const pictures = Number(process.argv[3] ?? 50)
const rounds = Number(process.argv[4] ?? 5)
const SECONDS = 3

const at = createTempFolder()
const env = { ATOLL_RATE_LIMITS: 'off', ...(database && { ATOLL_DATABASE_URL: database.url }) }
for (const tenant of ['busy', 'quiet']) await createTenantByCli({ at, env }, tenant)
{
  await using server = await startAtoll({ at, env })
  const [busy, quiet] = [await signIn(server.url, 'busy'), await signIn(server.url, 'quiet')]
  // Another size in each round, because thumbnails are stored.
  const sizes = Array.from({ length: rounds }, (_, n) => `${400 + n}x400`)
  await apiCaller(server.url, busy)('PUT', '/api/configurations/files-configuration', { metadata: { thumbs: sizes } })

  const photo = Buffer.from(await new Bun.Image(makePng(4_000, 3_000)).jpeg({ quality: 85 }).bytes())
  const upload = async (n: number) => {
    const body = new Uint8Array(Buffer.concat([photo, Buffer.from(`${n}`)]))
    const response = await fetch(`${server.url}/api/files?name=${n}.jpg`, { method: 'POST', headers: busy, body })
    return ((await response.json()) as { url: string }).url
  }
  const urls: string[] = []
  for (let n = 0; n < pictures; n++) urls.push(await upload(n))

  const call = apiCaller(server.url, quiet)
  await call('POST', '/api/blueprints', productsBlueprint)
  const list = '/api/blueprints/products/entities'
  const { body } = await call('POST', list, product(0))
  const reads: Load = {
    ...{ url: server.url, headers: quiet, method: 'GET', paths: [`${list}/${body._id}`] },
    ...{ connections: 4, seconds: SECONDS },
  }

  async function makeAll(size: string) {
    const began = performance.now()
    const statuses = await Promise.all(
      urls.map(async (url) => {
        const response = await fetch(`${server.url}${url}?thumb=${size}`, { headers: busy })
        await response.arrayBuffer()
        return response.status
      }),
    )
    if (statuses.some((status) => status !== 200)) throw new Error(`Not all thumbnails were made: ${statuses}`)
    return performance.now() - began
  }

  await measure(reads)
  const all: { ratio: number; alone: Figures; beside: Figures; ms: number }[] = []
  for (const size of sizes) {
    const alone = await measure(reads)
    const [ms, beside] = await Promise.all([makeAll(size), Bun.sleep(200).then(() => measure(reads))])
    all.push({ ratio: beside.p99 / alone.p99, alone, beside, ms })
  }
  all.sort((one, other) => one.ratio - other.ratio)
  const { ratio, alone, beside, ms } = all[rounds >> 1]!
  const describe = (name: string, { perSecond, p50, p99 }: Figures) =>
    console.log(
      `${name.padEnd(8)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50.toFixed(2)} ms  p99 ${p99.toFixed(2)} ms`,
    )
  console.log(
    `${pictures} thumbnails of 12 megapixels took ${(ms / 1000).toFixed(1)} s beside reads by id, whose p99 is ${ratio.toFixed(2)} of that alone (${all[0]!.ratio.toFixed(2)} to ${all.at(-1)!.ratio.toFixed(2)})`,
  )
  describe('alone', alone)
  describe('beside', beside)
}
rmSync(at, { recursive: true })
await database?.stop()
process.exit()
