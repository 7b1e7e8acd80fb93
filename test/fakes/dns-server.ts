import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

const HEADER_BYTES = 12 // bytes before the question
const TXT_TYPE = 16

/**
 * The texts of TXT records by name. A name that is `'broken'` gets SERVFAIL, and one that is `'silent'` gets no answer.
 */
export type TxtRecords = Record<string, string[] | 'broken' | 'silent'>

/**
 * Starts a real DNS server (RFC 1035) on this machine, and returns a resolver that asks it. `names` has the addresses
 * of each name, question by question; `texts` is read at each question. `asked` has the names in the order of the
 * questions.
 */
export async function startDnsServer(names: Record<string, string[][]>, texts: TxtRecords = {}) {
  const asked: string[] = []
  const turns = new Map<string, number>()
  const socket = createSocket('udp4', (query, { port, address }) => {
    const { name, end } = parseQuestion(query)
    const type = query.readUInt16BE(end)
    const key = `${name} ${type}`
    if (type === TXT_TYPE) {
      asked.push(name)
      const configured = texts[name]
      if (configured === 'silent') return
      const found = configured === 'broken' || !configured ? [] : configured
      const code = configured === 'broken' ? 0x82 : configured ? 0x80 : 0x83
      const head = Buffer.from([query[0]!, query[1]!, 0x81, code, 0, 1, 0, found.length, 0, 0, 0, 0])
      socket.send(Buffer.concat([head, query.subarray(HEADER_BYTES, end + 4), ...found.map(textRecord)]), port, address)
      return
    }
    const turn = turns.get(key) ?? 0
    turns.set(key, turn + 1)
    if (type === 1) asked.push(name)
    const configured = names[name]
    const all = configured?.[Math.min(turn, configured.length - 1)] ?? []
    const addresses = all.filter((one) => isIP(one) === (type === 1 ? 4 : 6))
    const head = Buffer.from([
      query[0]!,
      query[1]!,
      0x81,
      configured ? 0x80 : 0x83,
      0,
      1,
      0,
      addresses.length,
      0,
      0,
      0,
      0,
    ])
    socket.send(
      Buffer.concat([head, query.subarray(HEADER_BYTES, end + 4), ...addresses.map(addressRecord)]),
      port,
      address,
    )
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const resolver = new Resolver()
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  const resolve = async (host: string) => {
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  }
  return { resolve, asked, texts, address: `127.0.0.1:${socket.address().port}`, stop: () => socket.close() }
}

function parseQuestion(query: Buffer) {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at]!; length; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

function addressRecord(address: string) {
  const bytes = isIP(address) === 4 ? address.split('.').map(Number) : ipv6Bytes(address)
  return Buffer.from([0xc0, HEADER_BYTES, 0, isIP(address) === 4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, bytes.length, ...bytes])
}

/** Returns a TXT record with a text in parts of 100 bytes: a record may have many parts of at most 255. */
function textRecord(text: string) {
  const parts = (text.match(/.{1,100}/gs) ?? ['']).map((part) => Buffer.from(part))
  const data = Buffer.concat(parts.map((part) => Buffer.concat([Buffer.from([part.length]), part])))
  return Buffer.concat([
    Buffer.from([0xc0, HEADER_BYTES, 0, TXT_TYPE, 0, 1, 0, 0, 0, 0, data.length >> 8, data.length & 255]),
    data,
  ])
}

function ipv6Bytes(address: string) {
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) =>
    [a * 256 + +b, c * 256 + +d].map((part) => part.toString(16)).join(':'),
  )
  const [front = [], back = []] = plain.split('::').map((half) => half.split(':').filter(Boolean))
  const groups = [...front, ...Array(8 - front.length - back.length).fill('0'), ...back]
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
}
