import { createTempFolder } from '../temp-folder'

const folder = createTempFolder('quotas')
process.env.ATOLL_TENANTS = folder
await import('../../src/app')
const { assertQuotaLeft, reserveQuota } = await import('../../src/limits/quota-check')
const { setQuotas } = await import('../../src/limits/quotas')
const { createTenant } = await import('../../src/tenancy/tenants')

const [CHECKS, ROUNDS] = [200_000, 9]
const tenant = await createTenant('bench')

/** Checks as `create` in `src/entities/entities.ts` does. */
async function check() {
  await assertQuotaLeft(tenant, 'storage')
  using reservation = await reserveQuota(tenant, 'entities', 1)
  reservation?.keep()
}

async function measure(name: string) {
  const costs: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now()
    for (let n = 0; n < CHECKS; n++) await check()
    costs.push(((performance.now() - began) / CHECKS) * 1_000)
  }
  console.log(`${name.padEnd(16)} ${costs.sort((one, other) => one - other)[ROUNDS >> 1]!.toFixed(2)} µs a creation`)
}

await measure('without quotas')
await setQuotas('bench', { entities: 1e12, storage: 1e12 })
await measure('with quotas')
process.exit()
