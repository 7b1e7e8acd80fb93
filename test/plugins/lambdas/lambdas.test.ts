import { expect, test } from 'bun:test'
import { house } from '../../house'

test('a lambda runs', async () => {
  const admin = (await house()).as('admin')
  const code = `export default async (request: { body: number }, atoll: object) => ({ got: request.body })`
  const made = await admin.post('/lambdas', { name: 'a', code })
  expect(made.status).toBe(201)
  expect((await admin.post(`/lambdas/${made.body._id}/execute`, { body: 5 })).body).toMatchObject({
    result: { got: 5 },
  })
})
