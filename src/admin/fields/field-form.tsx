import { Anchor, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import {
  createContext,
  type FormEvent,
  Fragment,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useRef,
  useState,
} from 'react'
import { ApiProblem, findFieldError, findFieldProblem } from '../api/problem'
import { ProblemMessage } from '../ui/problem-message'
import { ConflictLine, FormFieldInput } from './form-field-input'
import { useFormState } from './form-state'
import { type FormField, type FormValues, toChanges } from './form-values'
import { findFieldFlaw } from './validation'

export type { FormField, FormValues } from './form-values'
export { toChanges } from './form-values'

/** How long a click takes at most. */
const CLICK_TIME_MS = 200

const CurrentValues = createContext<FormValues>({})

/** Returns what the form around an input holds now. */
export const useFormValues = () => useContext(CurrentValues)

type FieldFormProps<Saved> = {
  /** What a button outside of the form names: `<Button type="submit" form={id}>`. */
  id: string
  fields: readonly FormField[]
  /** The thing that is changed; without it, the form makes a new one. The form follows it when others change it. */
  before?: FormValues
  /** The name under which what was typed is kept in the browser until it is saved. */
  draftKey: string
  /** Sends what was typed. `changes` has only what differs from before; a value that was removed is null. */
  save(changes: FormValues, values: FormValues): Promise<Saved>
  onSaved(saved: Saved): void
  /** Who changed the thing meanwhile, and when, such as "Changed by Grace 5 seconds ago"; null for the user themselves. */
  changedBy?: ReactNode
}

/** A form that is made from descriptions of fields. The server's refusals stand at their fields, and Ctrl-Enter saves. */
export function FieldForm<Saved>({ id, fields, before, draftKey, save, onSaved, changedBy }: FieldFormProps<Saved>) {
  const form = useFormState(fields, before, draftKey)
  const { values, conflicts } = form
  const pendingChecks = useRef(new Set<ReturnType<typeof setTimeout>>())
  const latestValues = useRef(values)
  latestValues.current = values
  const [flaws, setFlaws] = useState<Record<string, string | undefined>>({})
  const shown = fields.filter((field) => !field.isHidden?.(values))
  const saving = useMutation({
    mutationFn: () => {
      if (Object.keys(conflicts).length > 0) throw new Error('Choose yours or theirs where both were changed.')
      const written = shown.filter(({ isReadOnly }) => !isReadOnly)
      const sent = Object.fromEntries(written.map(({ key }) => [key, values[key] ?? undefined]))
      form.expectSaved(sent)
      return save(toChanges(sent, before ?? {}), sent)
    },
    onSuccess: (saved) => {
      form.accept()
      onSaved(saved)
    },
    onError: () => form.expectSaved(undefined),
  })
  const change = (key: string, value: unknown) => {
    form.change(key, value)
    // The server's sentence was about the value before.
    setFlaws((all) => ({ ...all, [key]: '' }))
  }
  /** Ends a conflict. With the last one, nothing is left of a refusal that was about them. */
  const settle = (key: string, value: unknown) => {
    form.settle(key, value)
    if (Object.keys(conflicts).length === 1 && !(saving.error instanceof ApiProblem)) saving.reset()
  }
  const keepMine = () => {
    form.keepMine()
    if (!(saving.error instanceof ApiProblem)) saving.reset()
  }
  const checkField = (field: FormField) => {
    // What nobody typed in may be empty until it is saved.
    if (!(field.key in flaws) && (values[field.key] ?? undefined) === undefined) return
    // A sentence moves what is beneath it, so a click that took the focus away has to be over.
    const check = setTimeout(() => {
      pendingChecks.current.delete(check)
      const flaw = findFieldFlaw(field, latestValues.current[field.key])
      setFlaws((all) => ({ ...all, [field.key]: flaw ?? all[field.key] }))
    }, CLICK_TIME_MS)
    pendingChecks.current.add(check)
  }
  const findError = (key: string) => flaws[key] ?? findFieldError(saving.error, key)
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (saving.isPending) return
    // The server's answer says more.
    pendingChecks.current.forEach(clearTimeout)
    pendingChecks.current.clear()
    setFlaws({})
    saving.mutate()
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  }
  const isShownAtField = shown.some(({ key }) => findFieldError(saving.error, key))
  return (
    <form id={id} onSubmit={submit} onKeyDown={handleKey} noValidate>
      <Stack gap="sm" style={{ overflowWrap: 'anywhere' }}>
        {form.isRestored && (
          <Notice text="What you typed before is here again." action="Discard it" onAct={form.discardDraft} />
        )}
        {form.theirKeys.length > 0 && changedBy !== null && (
          <ChangeNotice {...{ changedBy, fields }} keys={form.theirKeys} conflicts={conflicts} onKeep={keepMine} />
        )}
        {saving.error && !isShownAtField && <ProblemMessage error={saving.error} m={0} />}
        <CurrentValues value={values}>
          {shown.map((field, n) => (
            <Fragment key={field.key}>
              <FormFieldInput
                field={field}
                value={values[field.key]}
                error={findError(field.key) || undefined}
                errorPath={findFieldProblem(saving.error, field.key)?.path.slice(field.key.length + 1)}
                autoFocus={!before && n === 0}
                onChange={(value) => change(field.key, value)}
                onBlur={() => checkField(field)}
              />
              {field.key in conflicts && (
                <ConflictLine
                  field={field}
                  theirs={conflicts[field.key]}
                  who="Theirs"
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

const Notice = ({ text, action, onAct }: { text: ReactNode; action?: string; onAct?: () => void }) => (
  <Text size="xs" c="dimmed" role="status">
    {text}{' '}
    {action && (
      <Anchor component="button" type="button" size="xs" onClick={onAct}>
        {action}
      </Anchor>
    )}
  </Text>
)

type ChangeNoticeProps = {
  changedBy: ReactNode
  fields: readonly FormField[]
  keys: string[]
  conflicts: FormValues
  onKeep: () => void
}

/** Says that somebody else changed the thing while it was open, and which of its fields. */
function ChangeNotice({ changedBy = 'Changed by somebody else', fields, keys, conflicts, onKeep }: ChangeNoticeProps) {
  const names = fields.filter(({ key }) => keys.includes(key)).map(({ key, title }) => title || key)
  const isOpen = Object.keys(conflicts).length > 0
  return (
    <Notice
      text={
        <>
          {changedBy}: {names.join(', ')}.
        </>
      }
      action={isOpen ? 'Keep mine' : undefined}
      onAct={onKeep}
    />
  )
}
