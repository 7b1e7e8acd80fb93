import { connect, createServer, type Socket } from 'node:net'

const SLICE_BYTES = 16 << 10

/**
 * What becomes of what callers send: it passes, slowly; it is held back, or only requests are whose first line has a text,
 * until the mode changes, which cuts their connections; it is answered with a status, or only such requests are; or its
 * connection is cut after so many bytes that it sent, or got.
 */
export type ProxyMode =
  | { bytesPerSecond?: number }
  | 'hang'
  | { hangsAt: string }
  | { status: number; headers?: string; at?: string }
  | { cutAfterSent: number }
  | { cutAfterReceived: number }

/** Starts a proxy in front of a server of HTTP that is slow, silent or failing, as its mode says. */
export async function startFaultyProxy(target: { port: number }) {
  const [sockets, held] = [new Set<Socket>(), new Set<Socket>()]
  let mode: ProxyMode = {}
  let [requests, heldRequests, passedBytes] = [0, 0, 0]
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
          held.delete(socket)
        })
    }
    let passing = Promise.resolve()
    let [sent, received] = [0, 0]
    caller.on('data', (bytes: Buffer) => {
      if (/^(GET|PUT|POST|HEAD|DELETE) /.test(bytes.subarray(0, 8).toString('latin1'))) requests++
      passing = passing.then(() => pass(bytes))
    })
    upstream.on('data', (bytes: Buffer) => {
      if (mode === 'hang') return
      if (typeof mode === 'object' && 'cutAfterReceived' in mode) {
        const left = mode.cutAfterReceived - received
        received += bytes.length
        if (left <= bytes.length) return void caller.end(bytes.subarray(0, Math.max(0, left)))
      }
      caller.write(bytes)
    })
    async function pass(bytes: Buffer) {
      const isAsked = (text: string) => bytes.toString('latin1').split('\r\n')[0]!.includes(text)
      for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
        if (mode === 'hang' || held.has(caller)) return
        if ('hangsAt' in mode && isAsked(mode.hangsAt)) {
          held.add(caller)
          heldRequests++
          return
        }
        if ('status' in mode && isAsked(mode.at ?? '')) {
          held.add(caller) // what follows belongs to the same request
          const more = mode.headers ? `${mode.headers}\r\n` : ''
          caller.end(`HTTP/1.1 ${mode.status} Failing\r\n${more}Content-Length: 0\r\nConnection: close\r\n\r\n`)
          return
        }
        const slice = bytes.subarray(start, start + SLICE_BYTES)
        if ('cutAfterSent' in mode && sent + slice.length > mode.cutAfterSent) {
          upstream.write(slice.subarray(0, Math.max(0, mode.cutAfterSent - sent)))
          caller.destroy()
          return
        }
        sent += slice.length
        if ('bytesPerSecond' in mode && mode.bytesPerSecond)
          await Bun.sleep((slice.length / mode.bytesPerSecond) * 1_000)
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
      for (const socket of held) socket.destroy()
    },
    /** Returns how many requests have come. */
    countRequests: () => requests,
    /** Returns how many requests were held back for their first line. */
    countHeld: () => heldRequests,
    /** Returns how many bytes the server has got. */
    countPassedBytes: () => passedBytes,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
