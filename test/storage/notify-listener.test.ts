import { expect, test } from 'bun:test'
import { NotifyListener } from '../../src/storage/engines/postgres/notify-listener'
import { startRefusingServer } from '../fakes/postgres-protocol'

test('a listener whose LISTEN is refused tries again on a new connection, and leaves none open', async () => {
  const server = await startRefusingServer()
  const listener = new NotifyListener(server.url, () => {})
  const before = listener.remoteVersion('tenant')
  while (server.count().made < 3) {
    listener.remoteVersion('tenant')
    await Bun.sleep(10)
  }
  expect(server.count().open).toBeLessThan(2)
  // What was not heard of may have changed.
  expect(listener.remoteVersion('tenant')).toBeGreaterThan(before)
  await listener.close()
  while (server.count().open) await Bun.sleep(10)
  server.stop()
})
