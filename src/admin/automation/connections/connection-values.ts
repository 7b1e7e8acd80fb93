import type { FormValues } from '../../fields/field-form'

/** Returns the properties of a part, by their names in the API; undefined when there are none. */
function toPart(part: string, values: FormValues): Record<string, unknown> | undefined {
  const entries = Object.entries(values)
    .filter(([key, value]) => key.startsWith(`${part}/`) && value !== undefined)
    .map(([key, value]) => [key.slice(part.length + 1), value] as const)
  return entries.length ? Object.fromEntries(entries) : undefined
}

/** Returns what a form says about the settings and secrets of a connection. */
export const toDraft = (values: FormValues) => ({
  metadata: toPart('metadata', values),
  authentication: toPart('authentication', values),
})
