import { Button, Select, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { queryClient } from '../api/queries'
import { toBlueprintKey } from '../data/blueprint-key'
import { fieldKinds } from '../fields'
import { showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type ColumnDraft, draftColumns, toBlueprintName, toFields, toTargets } from './column-draft'
import { IDENTIFIER } from './column-match'
import { ColumnTable } from './column-table'
import type { Notation } from './entity-import'
import { FileDrop } from './file-drop'
import { FileLine, useRowCount } from './file-line'
import { openRowFile, type RowFile } from './file-rows'
import { startImport } from './import-run'
import { NotationInputs, USUAL_NOTATION } from './notation-inputs'
import classes from './transfer.module.css'

const FORM_ID = 'blueprint-from-file'
const NEW_ENTITIES = { mode: 'create', isDryRun: false } as const
/** A relation needs a target, which a file does not name. */
const TYPE_OPTIONS = [
  { value: IDENTIFIER, label: 'Identifier' },
  ...Object.entries(fieldKinds)
    .filter(([type]) => type !== 'relation')
    .map(([value, { label }]) => ({ value, label })),
]

/** A form that makes a blueprint of the columns of a file and imports its rows. */
export function BlueprintFromFile() {
  const navigate = useNavigate()
  const [file, setFile] = useState<RowFile>()
  const [name, setName] = useState('')
  const [drafts, setDrafts] = useState<ColumnDraft[]>([])
  const [notation, setNotation] = useState(USUAL_NOTATION)
  const count = useRowCount(file)
  const body = { key: toBlueprintKey(name), name, fields: toFields(drafts), permissions: [] }
  const create = useMutation({
    mutationFn: async (opened: RowFile) => {
      const blueprint = await fetchData(api.POST('/api/blueprints', { body }))
      await queryClient.invalidateQueries({ queryKey: ['blueprints'] })
      const request = { blueprint, file: opened, targets: toTargets(drafts), notation, ...NEW_ENTITIES }
      void startImport(request, count)
      await navigate({ to: '/data/$blueprint', params: { blueprint: blueprint.key } })
    },
  })
  const open = (opened: RowFile) => {
    setFile(opened)
    setName(toBlueprintName(opened.file.name))
    setDrafts(draftColumns(opened, notation.decimal))
  }
  const changeNotation = (changed: Notation) => {
    setNotation(changed)
    if (file && changed.decimal !== notation.decimal) setDrafts(draftColumns(file, changed.decimal))
  }
  const change = (column: string, type: ColumnDraft['type']) =>
    setDrafts((all) => all.map((draft) => (draft.column === column ? { ...draft, type } : draft)))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (file && !create.isPending) create.mutate(file)
  }
  const nameError = findFieldError(create.error, 'name') ?? findFieldError(create.error, 'key')
  return (
    <Screen
      title="New blueprint from a file"
      request={{ method: 'POST', path: '/api/blueprints', body }}
      actions={
        file && (
          <Button type="submit" form={FORM_ID} loading={create.isPending} disabled={!body.fields.length}>
            Create and import
          </Button>
        )
      }
    >
      <form id={FORM_ID} className={classes.screen} onSubmit={submit}>
        {!file && <FileDrop onOpen={open} />}
        {file && (
          <>
            <FileLine file={file} count={count} onClose={() => setFile(undefined)} />
            <NotationInputs
              file={file}
              notation={notation}
              onSeparator={(separator) => void openRowFile(file.file, separator).then(open, showProblem)}
              onChange={changeNotation}
            />
            {create.error && !nameError && <ProblemMessage error={create.error} />}
            <TextInput
              maw={360}
              label="Name"
              description="Plural name. At first, only administrators can read the entities."
              required
              value={name}
              error={nameError}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <ColumnTable
              file={file}
              isUnused={(column) => !drafts.find((draft) => draft.column === column)?.type}
              renderChoice={(column) => (
                <TypeSelect
                  column={column}
                  type={drafts.find((draft) => draft.column === column)?.type ?? ''}
                  onChange={(type) => change(column, type)}
                />
              )}
            />
          </>
        )}
      </form>
    </Screen>
  )
}

type TypeSelectProps = { column: string; type: ColumnDraft['type']; onChange: (type: ColumnDraft['type']) => void }

const TypeSelect = ({ column, type, onChange }: TypeSelectProps) => (
  <Select
    size="xs"
    miw={140}
    aria-label={`Type of ${column}`}
    placeholder="Leave out"
    clearable
    data={TYPE_OPTIONS}
    value={type || null}
    onChange={(next) => onChange((next ?? '') as ColumnDraft['type'])}
  />
)
