// A process that answers like OpenAI's API, for measurements. It prints its address.
import { startOpenai } from './openai-server'

const server = await startOpenai()
// What was asked is not looked at, and must not fill the memory.
setInterval(() => server.clear(), 1_000)
console.log(server.url)
// It ends with the process that has started it.
for await (const _ of Bun.stdin.stream());
process.exit()
