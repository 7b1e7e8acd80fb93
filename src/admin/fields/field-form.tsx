import { Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { createContext, type FormEvent, Fragment, type KeyboardEvent, type ReactNode, useContext } from 'react'
import { ApiProblem, findFieldError, findFieldProblem } from '../api/problem'
import { ProblemMessage } from '../ui/problem-message'
import { useFieldFlaws } from './field-flaws'
import { ConflictLine, FormFieldInput } from './form-field-input'
import { ChangeNotice, FormNotice } from './form-notices'
import { useFormState } from './form-state'
import { type FormField, type FormValues, toChanges } from './form-values'

export type { FormField, FormValues } from './form-values'
export { toChanges } from './form-values'

const CONFLICT_MESSAGE = 'Someone else changed the same fields. Choose which value to keep for each.'

const CurrentValues = createContext<FormValues>({})

/** Returns what the form around an input holds now. */
export const useFormValues = () => useContext(CurrentValues)

type FieldFormProps<Saved> = {
  /** What a button outside of the form names: `<Button type="submit" form={id}>`. */
  id: string
  fields: readonly FormField[]
  /** What is changed; without it, the form creates something new. The form follows it when others change it. */
  before?: FormValues
  /** The name under which what was typed is kept in the browser until it is saved. */
  draftKey: string
  /** Sends what was typed. `changes` has only what differs from before; a value that was removed is null. */
  save(changes: FormValues, values: FormValues): Promise<Saved>
  onSaved(saved: Saved): void
  /** Who changed it meanwhile, and when, such as "Changed by Grace 5 seconds ago"; null for the user themselves. */
  changedBy?: ReactNode
}

/** Sends a form, and says what the server refused. A form with open conflicts is not sent. */
function useSaving<Saved>(
  { fields, before, save, onSaved }: FieldFormProps<Saved>,
  form: ReturnType<typeof useFormState>,
) {
  return useMutation({
    mutationFn: () => {
      if (Object.keys(form.conflicts).length > 0) throw new Error(CONFLICT_MESSAGE)
      const sentFields = fields.filter(({ isReadOnly, isHidden }) => !isReadOnly && !isHidden?.(form.values))
      const sent = Object.fromEntries(sentFields.map(({ key }) => [key, form.values[key] ?? undefined]))
      form.expectSaved(sent)
      return save(toChanges(sent, before ?? {}), sent)
    },
    onSuccess: (saved) => {
      form.accept()
      onSaved(saved)
    },
    onError: () => form.expectSaved(undefined),
  })
}

/** A form that is made from descriptions of fields. The server's refusals stand at their fields, and Ctrl-Enter saves. */
export function FieldForm<Saved>(props: FieldFormProps<Saved>) {
  const { id, fields, before, draftKey, changedBy } = props
  const form = useFormState(fields, before, draftKey)
  const { values, conflicts } = form
  const { flaws, checkField, clearFlaw, clearFlaws } = useFieldFlaws(values)
  const saving = useSaving(props, form)
  const shownFields = fields.filter((field) => !field.isHidden?.(values))
  const isShownAtField = shownFields.some(({ key }) => findFieldError(saving.error, key))
  /** Ends a conflict. With the last one, nothing is left of a refusal that was about them. */
  const settle = (key: string, value: unknown) => {
    form.settle(key, value)
    if (Object.keys(conflicts).length === 1 && !(saving.error instanceof ApiProblem)) saving.reset()
  }
  const keepTyped = () => {
    form.keepTyped()
    if (!(saving.error instanceof ApiProblem)) saving.reset()
  }
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (saving.isPending) return
    clearFlaws()
    saving.mutate()
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  }
  const change = (key: string, value: unknown) => {
    form.change(key, value)
    clearFlaw(key)
  }
  return (
    <form id={id} onSubmit={submit} onKeyDown={handleKey} noValidate>
      <Stack gap="sm" style={{ overflowWrap: 'anywhere' }}>
        {form.isRestored && (
          <FormNotice text="Your unsaved changes were restored." action="Discard it" onAct={form.discardDraft} />
        )}
        {form.changedKeys.length > 0 && changedBy !== null && (
          <ChangeNotice {...{ changedBy, fields, conflicts }} keys={form.changedKeys} onKeep={keepTyped} />
        )}
        {saving.error && !isShownAtField && <ProblemMessage error={saving.error} m={0} />}
        <CurrentValues value={values}>
          {shownFields.map((field, n) => (
            <Fragment key={field.key}>
              <FormFieldInput
                field={field}
                value={values[field.key]}
                error={(flaws[field.key] ?? findFieldError(saving.error, field.key)) || undefined}
                errorPath={findFieldProblem(saving.error, field.key)?.path.slice(field.key.length + 1)}
                autoFocus={!before && n === 0}
                onChange={(value) => change(field.key, value)}
                onBlur={() => checkField(field)}
              />
              {field.key in conflicts && (
                <ConflictLine
                  field={field}
                  saved={conflicts[field.key]}
                  onTake={() => settle(field.key, conflicts[field.key] ?? undefined)}
                  onKeep={() => settle(field.key, values[field.key])}
                />
              )}
            </Fragment>
          ))}
        </CurrentValues>
      </Stack>
    </form>
  )
}
