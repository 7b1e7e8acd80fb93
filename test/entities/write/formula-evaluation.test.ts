import { expect, test } from 'bun:test'
import { evaluateInTurn } from '../../../src/entities/write/formula-evaluation'
import { fullAccessRules } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const costlyFormula = '$count([1..1500]^(>$))'

test('a read is answered between the formulas of many earlier creates', async () => {
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'result', type: 'number' },
  ]
  const { as, path } = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), {
    computed: { result: costlyFormula },
  })
  const { body } = await as('user').post(path, { title: 'first' })
  expect(body.result).toBe(1_500)
  let made = 0
  const creates = Promise.all(
    Array.from({ length: 30 }, async () => {
      const { status } = await as('user').post(path, {})
      made++
      return status
    }),
  )
  // All creates have started after this.
  await new Promise(setImmediate)
  expect((await as('other').get(`${path}/${body._id}`)).status).toBe(200)
  expect(made).toBeLessThan(10)
  expect(await creates).toEqual(Array(30).fill(201))
})

test('rejects the 201st waiting formula of a caller with 503 BUSY once the tenant has spent its budget', async () => {
  const payer = { tenant: `t${crypto.randomUUID()}`, caller: 'one' }
  const noWork = async () => {}
  // Formulas within the budget are not counted.
  await Promise.all(Array.from({ length: 300 }, () => evaluateInTurn(payer, noWork)))
  await evaluateInTurn(payer, async () => {
    for (const until = performance.now() + 300; performance.now() < until; );
  })
  const results = await Promise.allSettled(Array.from({ length: 201 }, () => evaluateInTurn(payer, noWork)))
  expect(results.map(({ status }) => status)).toEqual([...Array(200).fill('fulfilled'), 'rejected'])
  expect(results[200]).toMatchObject({
    reason: { status: 503, code: 'BUSY', more: { headers: { 'retry-after': '1' } } },
  })
  const otherTenant = { ...payer, tenant: `t${crypto.randomUUID()}` }
  expect(await evaluateInTurn(otherTenant, async () => 'done')).toBe('done')
})
