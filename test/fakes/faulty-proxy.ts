import { connect, createServer, type Socket } from 'node:net'

const SLICE_BYTES = 16 << 10

/** What becomes of what callers send: it passes, slowly; it is held back; or it is answered with a status. */
export type ProxyMode = { bytesPerSecond?: number } | 'hang' | { status: number }

/** Starts a proxy in front of a server of HTTP that is slow, silent or failing, as its mode says. */
export async function startFaultyProxy(target: { port: number }) {
  const sockets = new Set<Socket>()
  let mode: ProxyMode = {}
  let [requests, passedBytes] = [0, 0]
  const server = createServer((caller) => {
    const upstream = connect(target.port, '127.0.0.1')
    for (const socket of [caller, upstream]) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          caller.destroy()
          upstream.destroy()
          sockets.delete(socket)
        })
    }
    let passing = Promise.resolve()
    caller.on('data', (bytes: Buffer) => {
      if (/^(GET|PUT|POST|HEAD|DELETE) /.test(bytes.subarray(0, 8).toString('latin1'))) requests++
      passing = passing.then(() => pass(bytes))
    })
    upstream.on('data', (bytes) => void (mode === 'hang' || caller.write(bytes)))
    async function pass(bytes: Buffer) {
      for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
        if (mode === 'hang') return
        if ('status' in mode) {
          caller.end(`HTTP/1.1 ${mode.status} Failing\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
          return
        }
        const slice = bytes.subarray(start, start + SLICE_BYTES)
        if (mode.bytesPerSecond) await Bun.sleep((slice.length / mode.bytesPerSecond) * 1_000)
        upstream.write(slice)
        passedBytes += slice.length
      }
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    setMode: (next: ProxyMode) => {
      mode = next
    },
    /** Returns how many requests have come. */
    countRequests: () => requests,
    /** Returns how many bytes the server has got. */
    countPassedBytes: () => passedBytes,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
