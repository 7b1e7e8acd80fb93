#!/usr/bin/env bun
// What we write is nobody else's to read.
process.umask(0o077)

try {
  const { run } = await import('./commands/program')
  await run(process.argv)
} catch (error) {
  // A sentence for what a person can mend; the rest with all that helps to find out.
  const { ConfigError } = await import('./core/config-error')
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exit(2)
}

export {}
