import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { tenantFolder } from '../../src/tenancy/databases'
import { moveDatabaseToTrash } from '../../src/tenancy/tenant-files'

test('the files that users uploaded stay where they are when a database goes to the trash', async () => {
  const id = `t${crypto.randomUUID()}`
  const [database, upload] = [join(tenantFolder(id), 'data.db'), join(tenantFolder(id), 'files', 'ab', 'abc')]
  await Bun.write(database, 'rows')
  await Bun.write(upload, 'content')
  const trash = moveDatabaseToTrash(id)!
  expect([existsSync(database), existsSync(upload)]).toEqual([false, true])
  expect(existsSync(join(trash, 'data.db'))).toBeTrue()
  expect(moveDatabaseToTrash(`t${crypto.randomUUID()}`)).toBeUndefined()
})
