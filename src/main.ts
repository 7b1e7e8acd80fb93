#!/usr/bin/env bun
// Only the owner may read the files that this process writes.
process.umask(0o077)

try {
  // A compiled binary starts itself again for lambdas and thumbnails: then this process does nothing else.
  if (process.argv[2] === 'sandbox' && process.send) await import('./lambdas/sandbox/process-main')
  else if (process.argv[2] === 'thumbnail' && process.argv[3]) await import('./files/thumbnails/process-main')
  else await (await import('./commands/program')).run(process.argv)
} catch (error) {
  // A message for failures that a person can fix; a stack for all others.
  const { explainFailure, printFailure } = await import('./commands/failure')
  const failure = explainFailure(error)
  if (!failure) throw error
  printFailure(failure, process.argv.includes('--json'))
  process.exit()
}

export {}
