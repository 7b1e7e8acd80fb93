// `bun fill.ts <rows> <file>`: makes a tenant with that many entities where the settings say, and tells the file how to
// ask for them. A process of its own, because the settings are read once.
import { writeFileSync } from 'node:fs'
import '../../src/app'
import * as tokens from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import * as blueprints from '../../src/blueprints/blueprints'
import { create } from '../../src/entities/entities'
import { databases } from '../../src/tenancy/databases'
import { createTenant } from '../../src/tenancy/tenants'
import { notesBlueprint, product, productsBlueprint } from './sample-data'

/** An API token, and every entity as it was answered. */
export type Filled = { token: string; json: string[] }

const ENTITIES_PER_BATCH = 500

const [rows, file = ''] = [Number(process.argv[2]), process.argv[3]]
const tenant = await createTenant('bench', ['127.0.0.1'])
const user = await registerUser(tenant, { username: 'bench' }, ['user'])
const { token } = await tokens.issueApiToken(tenant, user._id, { nickname: 'bench' })
const via = 'api-key' as const
const actor = { user: user._id, roles: ['user'], privileged: false, workspace: null, via, scopes: [] }
const request = new Request('http://bench/')
const editor = { ...tenant, actor: { ...actor, privileged: true } }
for (const one of [productsBlueprint, notesBlueprint]) await blueprints.insert(editor, one)
const began = performance.now()
const json: string[] = []
for (let n = 0; n < rows; n += ENTITIES_PER_BATCH) {
  const some = Array.from({ length: Math.min(ENTITIES_PER_BATCH, rows - n) }, async (_, i) =>
    (await create({ ...tenant, actor }, 'products', product(n + i), request)).text(),
  )
  json.push(...(await Promise.all(some)))
}
console.log(`filled ${rows} entities, ${Math.round(rows / ((performance.now() - began) / 1000))}/s in process`)
await databases.close()
writeFileSync(file, JSON.stringify({ token, json } satisfies Filled))
process.exit()
