import { createTempFolder } from '../temp-folder'
import { product, productsBlueprint } from './sample-data'

const folder = createTempFolder('history')
process.env.ATOLL_TENANTS = folder
process.env.ATOLL_RATE_LIMITS = 'off'
process.env.ATOLL_LOG_LEVEL = 'error'
const { createTestTenant } = await import('../test-tenant')
const [SECONDS, ROUNDS] = [Number(process.argv[2] ?? 1), 7]
const { as } = await createTestTenant()
const admin = as('admin')
const kinds = ['without', 'with'] as const
for (const key of kinds) await admin.post('/blueprints', { ...productsBlueprint, key, history: key === 'with' })

const created = { without: [] as string[], with: [] as string[] }
let count = 0

const writes = {
  async create(key: (typeof kinds)[number]) {
    const { status, body } = await admin.post(`/blueprints/${key}/entities`, product(count++))
    if (status !== 201) throw new Error(body.message)
    created[key].push(body._id)
  },
  async change(key: (typeof kinds)[number]) {
    const ids = created[key]
    const path = `/blueprints/${key}/entities/${ids[count++ % ids.length]}`
    const { status, body } = await admin.put(path, { stock: count })
    if (status !== 200) throw new Error(body.message)
  },
}

async function measure(work: () => Promise<void>, inFlight: number): Promise<number> {
  let done = 0
  const began = performance.now()
  const until = began + SECONDS * 1_000
  const run = async () => {
    for (; performance.now() < until; done++) await work()
  }
  await Promise.all(Array.from({ length: inFlight }, run))
  return done / ((performance.now() - began) / 1_000)
}

const median = (values: number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!
for (const [name, write] of Object.entries(writes))
  for (const inFlight of [1, 64]) {
    const ratios: number[] = []
    const rates = { without: [] as number[], with: [] as number[] }
    for (let round = -1; round < ROUNDS; round++) {
      for (const key of round % 2 ? kinds : kinds.toReversed()) {
        const rate = await measure(() => write(key), inFlight)
        if (round >= 0) rates[key].push(rate)
      }
      if (round >= 0) ratios.push(rates.without.at(-1)! / rates.with.at(-1)!)
    }
    const [without, withHistory] = [median(rates.without), median(rates.with)].map(Math.round)
    const slower = `${((median(ratios) - 1) * 100).toFixed(0)} % slower`
    console.log(`${name}, ${inFlight} in flight: ${without} a second without, ${withHistory} with (${slower})`)
  }
process.exit()
