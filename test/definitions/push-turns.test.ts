import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { pullFolder, pushFolder } from '../../src/definitions/folder-push'
import { kinds } from '../../src/definitions/kinds'
import { openLocalTarget } from '../../src/definitions/target'
import { createTempFolder } from '../fakes/cli'
import { errorOf } from '../rejections'
import { createTestTenant } from '../test-tenant'

afterEach(() => mock.restore())

const write = (folder: string, path: string, definition: object | string) =>
  Bun.write(join(folder, path), typeof definition === 'string' ? definition : JSON.stringify(definition))

/** Lets each block take so long to create that the turn of a push is over after it. */
function slowDownBlocks() {
  const [now, create] = [performance.now.bind(performance), kinds.block.create]
  let passed = 0
  spyOn(performance, 'now').mockImplementation(() => now() + passed)
  spyOn(kinds.block, 'create').mockImplementation(async (...args) => {
    const created = await create(...args)
    passed += 11_000
    return created
  })
}

test('a push whose turn is over says how many changes remain, and the same push makes them', async () => {
  const { id } = await createTestTenant()
  const target = await openLocalTarget(id)
  const files = Object.fromEntries(['a', 'b', 'c'].map((name) => [`blocks/${name}.json`, '{"content": "x"}']))
  slowDownBlocks()
  const names = (changes: { name: string }[]) => changes.map(({ name }) => name)
  for (const [name, remaining] of [
    ['a', 2],
    ['b', 1],
    ['c', 0],
  ] as const) {
    const pushed = await target.push({ files })
    expect([names(pushed.changes), pushed.remaining]).toEqual([[name], remaining])
  }
  expect(await target.push({ files })).toMatchObject({ changes: [], remaining: 0 })
})

test('the command pushes a folder in as many turns as it takes', async () => {
  const { id } = await createTestTenant()
  const [target, folder] = [await openLocalTarget(id), createTempFolder()]
  for (const name of ['a', 'b', 'c']) await write(folder, `blocks/${name}.json`, { content: name })
  slowDownBlocks()
  const turns = spyOn(target, 'push')
  expect((await pushFolder(target, folder)).changes).toHaveLength(3)
  expect(turns).toHaveBeenCalledTimes(3)
})

test.each([
  ['while another change is made', 'lambda', 'create'],
  ['between the last look at it and its change', 'block', 'read'],
] as const)('what somebody changes %s is 412, stays as it is, and is changed by a push after a pull', async (...at) => {
  const [, kind, operation] = at
  const tenant = await createTestTenant()
  const [target, folder, admin] = [await openLocalTarget(tenant.id), createTempFolder(), tenant.as('admin')]
  await write(folder, 'blocks/hero.json', { content: 'Welcome' })
  await pushFolder(target, folder)
  const [{ _id }] = (await admin.get('/blocks')).body
  const run = kinds[kind][operation] as (...args: unknown[]) => Promise<unknown>
  const spy = spyOn(kinds[kind], operation).mockImplementationOnce((async (...args: unknown[]) => {
    const result = await run(...args)
    expect((await admin.put(`/blocks/${_id}`, { content: 'Theirs' })).status).toBe(200)
    return result
  }) as never)
  await write(folder, 'blocks/hero.json', { content: 'Mine' })
  await write(folder, 'lambdas/one.ts', 'export default () => 1')
  expect(await errorOf(pushFolder(target, folder))).toMatchObject({
    ...{ status: 412, message: expect.stringContaining('1 of 2 changes are made.') },
  })
  expect(spy).toHaveBeenCalled()
  expect((await admin.get(`/blocks/${_id}`)).body.content).toBe('Theirs')
  expect(await errorOf(pushFolder(target, folder))).toMatchObject({ status: 412 })
  await pullFolder(target, folder)
  await write(folder, 'blocks/hero.json', { content: 'Both' })
  expect((await pushFolder(target, folder)).changes).toMatchObject([{ action: 'change', name: 'hero' }])
})
