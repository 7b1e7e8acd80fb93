// engine: sqlite
import { expect, test } from 'bun:test'
import { generateAdminSchema, SCHEMA_FILE } from './admin-schema'

test('the types of the admin page are those that "npm run docs" generates from the description of the API', async () => {
  expect(await Bun.file(SCHEMA_FILE).text()).toBe(await generateAdminSchema())
}, 120_000)
