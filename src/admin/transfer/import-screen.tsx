import { Button, Radio, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { useObservable } from '../api/observable'
import { blueprintQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type ColumnTargets, IDENTIFIER, listTargets, matchColumns } from './column-match'
import { ColumnTable } from './column-table'
import type { Import, Notation } from './entity-import'
import { FileDrop } from './file-drop'
import { FileLine, useRowCount } from './file-line'
import { openRowFile, type RowFile } from './file-rows'
import { lastImport, startImport } from './import-run'
import { ImportSummary } from './import-summary'
import { describeDialect, NotationInputs, USUAL_NOTATION } from './notation-inputs'
import classes from './transfer.module.css'

const route = getRouteApi('/frame/data/$blueprint/all/import')

/** Imports a file into a blueprint: what its columns mean, a check that saves nothing, and a report. */
export function ImportScreen() {
  const { blueprint: key } = route.useParams()
  const { data: blueprint, error } = useQuery(blueprintQuery(key))
  if (error) return <ProblemMessage error={error} />
  return blueprint ? <ImportForm key={key} blueprint={blueprint} /> : null
}

function ImportForm({ blueprint }: { blueprint: Blueprint }) {
  const run = useObservable(lastImport)
  const ownRun = run?.request.blueprint.key === blueprint.key ? run : undefined
  // A user who comes back to the screen after a check goes on with its file.
  const [checked] = useState(() => (ownRun?.request.isDryRun ? ownRun.request : undefined))
  const [file, setFile] = useState<RowFile | undefined>(checked?.file)
  const [targets, setTargets] = useState<ColumnTargets>(checked?.targets ?? {})
  const [mode, setMode] = useState<Import['mode']>(checked?.mode ?? 'create')
  const [notation, setNotation] = useState<Notation>(checked?.notation ?? USUAL_NOTATION)
  const count = useRowCount(file)
  const open = (opened: RowFile) => {
    setFile(opened)
    setTargets(matchColumns(opened.columns, blueprint))
  }
  const start = (isDryRun: boolean) =>
    file && startImport({ blueprint, file, targets, mode, notation, isDryRun }, count)
  const openAnother = () => {
    lastImport.set(undefined)
    setFile(undefined)
  }
  // Rows that are imported once more would be there twice.
  if (ownRun && !ownRun.isRunning && !ownRun.request.isDryRun && ownRun.report.imported > 0)
    return (
      <Screen title={`Import into ${blueprint.name}`} request={toRequest(blueprint, ownRun.request)}>
        <div className={classes.screen}>
          <ImportSummary run={ownRun} onAnother={openAnother} />
        </div>
      </Screen>
    )
  const hasTargets = Object.keys(targets).length > 0
  return (
    <Screen
      title={`Import into ${blueprint.name}`}
      request={toRequest(blueprint, { mode, notation })}
      actions={
        file && (
          <>
            <Button variant="default" disabled={!hasTargets || ownRun?.isRunning} onClick={() => start(true)}>
              Check
            </Button>
            <Button disabled={!hasTargets || ownRun?.isRunning} onClick={() => start(false)}>
              Import {count === undefined ? '' : count.toLocaleString()} {count === 1 ? 'row' : 'rows'}
            </Button>
          </>
        )
      }
    >
      <div className={classes.screen}>
        {ownRun && !ownRun.isRunning && <ImportSummary run={ownRun} />}
        {!file && <FileDrop onOpen={open} />}
        {file && (
          <>
            <FileLine file={file} count={count} onClose={() => setFile(undefined)} />
            <NotationInputs
              file={file}
              notation={notation}
              onSeparator={(separator) => void openRowFile(file.file, separator).then(open, showProblem)}
              onChange={setNotation}
            />
            {file.dialect && (
              <Text size="sm" c="dimmed">
                {describeDialect(file, file.columns)}
              </Text>
            )}
            <MissingFields blueprint={blueprint} targets={targets} />
            <ColumnTable
              file={file}
              isUnused={(column) => !targets[column]}
              renderChoice={(column) => (
                <TargetSelect column={column} blueprint={blueprint} targets={targets} onChange={setTargets} />
              )}
            />
            <ModeChoice isShown={Object.values(targets).includes(IDENTIFIER)} mode={mode} onChange={setMode} />
          </>
        )}
      </div>
    </Screen>
  )
}

const toRequest = ({ key }: Blueprint, { mode, notation }: Pick<Import, 'mode' | 'notation'>) => ({
  method: 'POST' as const,
  path: `/api/blueprints/${key}/entities/import`,
  query: { mode, timezone: notation.timezone },
})

type TargetSelectProps = {
  column: string
  blueprint: Blueprint
  targets: ColumnTargets
  onChange: (targets: ColumnTargets) => void
}

/** Chooses the field that a column fills. A field that another column filled is taken from it. */
const TargetSelect = ({ column, blueprint, targets, onChange }: TargetSelectProps) => (
  <Select
    size="xs"
    miw={130}
    aria-label={`Field for ${column}`}
    placeholder="Leave out"
    clearable
    searchable
    data={[
      { value: IDENTIFIER, label: 'identifier' },
      ...listTargets(blueprint).map(({ key, title }) => ({ value: key, label: title || key })),
    ]}
    value={targets[column] ?? null}
    onChange={(target) => {
      const others = Object.entries(targets).filter(([name, each]) => name !== column && each !== target)
      onChange(Object.fromEntries(target ? [...others, [column, target]] : others))
    }}
  />
)

/** Says which fields have to have a value and get none. */
function MissingFields({ blueprint, targets }: { blueprint: Blueprint; targets: ColumnTargets }) {
  const missing = listTargets(blueprint).filter(
    ({ key, required, default: initial }) => required && initial === undefined && !Object.values(targets).includes(key),
  )
  if (!missing.length) return null
  const names = missing.map(({ key, title }) => title || key).join(', ')
  return (
    <Text size="sm" className={classes.warning} role="status">
      No column fills {names}, which new entities need. Choose one above the rows.
    </Text>
  )
}

type ModeChoiceProps = { isShown: boolean; mode: Import['mode']; onChange: (mode: Import['mode']) => void }

const ModeChoice = ({ isShown, mode, onChange }: ModeChoiceProps) =>
  isShown && (
    <Radio.Group
      label="Rows whose identifier exists already"
      value={mode}
      onChange={(next) => onChange(next as Import['mode'])}
    >
      <Stack gap="xs" mt={4}>
        <Radio value="create" label="are refused" />
        <Radio value="upsert" label="change the entity" description="Fields without a column stay as they are." />
      </Stack>
    </Radio.Group>
  )
