import { closeSync, openSync } from 'node:fs'

const BUFFER_BYTES = 4 << 20

/** Writes a new file, which only its owner can read. @throws EEXIST when there is one already */
export async function writePrivateFile(content: AsyncIterable<Uint8Array>, path: string) {
  closeSync(openSync(path, 'wx', 0o600))
  const sink = Bun.file(path).writer({ highWaterMark: BUFFER_BYTES })
  for await (const chunk of content) {
    sink.write(chunk)
    await sink.flush()
  }
  await sink.end()
}
