// The little of jq that the guides use: a path such as `.items[0]._id`, and -r. For machines without jq.
const expression = process.argv.slice(2).filter((argument) => argument !== '-r')[0] ?? '.'
let value = JSON.parse(await Bun.stdin.text())
for (const [key] of expression.matchAll(/[\w$-]+/g)) value = value?.[key]
console.log(typeof value === 'string' ? value : JSON.stringify(value ?? null))
