import type { FormEvent, ReactNode } from 'react'

/** What is shown while something loads, or when it has failed. */
export function Notice({ error, isLoading = false }: { error?: unknown; isLoading?: boolean }) {
  if (error) return <p role="alert">{error instanceof Error ? error.message : String(error)}</p>
  return isLoading ? <p role="status">Loading …</p> : null
}

/** A label with its input. */
export const Field = ({ label, children }: { label: string; children: ReactNode }) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the input is among the children
  <label className="field">
    <span>{label}</span>
    {children}
  </label>
)

/** Handles the submission of a form, and gives its texts by name. */
export const onSubmit =
  (handle: (texts: Record<string, string>, form: HTMLFormElement) => unknown) =>
  (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const entries = [...new FormData(form)].filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    handle(Object.fromEntries(entries), form)
  }

export const formatTime = (time: string) =>
  new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
