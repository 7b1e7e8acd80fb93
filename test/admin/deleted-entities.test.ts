// engine: sqlite
import { expect, test } from 'bun:test'
import { forgetDeletion, isDeleted, trackDeletion } from '../../src/admin/data/deletions'
import { errorOf } from '../rejections'

test('an entity counts as deleted from the request on, until it fails or another one has its identifier', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const deletion = trackDeletion('contacts', 'ada', () => promise)
  expect(isDeleted('contacts', 'ada')).toBe(true)
  expect(isDeleted('companies', 'ada')).toBe(false)
  resolve()
  await deletion
  expect(isDeleted('contacts', 'ada')).toBe(true)
  forgetDeletion('contacts', 'ada')
  expect(isDeleted('contacts', 'ada')).toBe(false)
  const failed = trackDeletion('contacts', 'ada', () => Promise.reject(new Error('It was changed.')))
  expect((await errorOf(failed)).message).toContain('It was changed.')
  expect(isDeleted('contacts', 'ada')).toBe(false)
})
