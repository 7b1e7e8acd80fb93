import { readFileSync } from 'node:fs'

// The little of jq that the guides use: a path such as `.items[0]._id`, and -r. For machines without jq.
const path = process.argv.slice(2).find((argument) => argument !== '-r') ?? '.'
let value = JSON.parse(readFileSync(0, 'utf8'))
for (const [key] of path.matchAll(/[\w$-]+/g)) value = value?.[key]
console.log(typeof value === 'string' ? value : JSON.stringify(value ?? null))
