/** How a person starts this program here, for hints that can be pasted: the binary by its name, a checkout by npx. */
export const invocation = isCompiled() ? 'atoll' : 'npx atoll'

function isCompiled() {
  return /^(\/\$bunfs|[A-Z]:[\\/]~BUN)/.test(Bun.main)
}
