import type { FormValues } from '../../fields/field-form'

/** Returns the properties of a part, by their names in the API; undefined when there are none. */
function pickPart(part: string, values: FormValues): Record<string, unknown> | undefined {
  const entries = Object.entries(values)
    .filter(([key, value]) => key.startsWith(`${part}/`) && value !== undefined)
    .map(([key, value]) => [key.slice(part.length + 1), value] as const)
  return entries.length ? Object.fromEntries(entries) : undefined
}

/** Returns the settings and secrets of a connection from the values of a form, whose keys are their paths. */
export const toConnectionBody = (values: FormValues) => ({
  metadata: pickPart('metadata', values),
  authentication: pickPart('authentication', values),
})
