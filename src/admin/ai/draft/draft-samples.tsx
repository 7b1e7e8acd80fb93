import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { NewBlueprint } from '../../api/schema'
import { ProblemMessage } from '../../ui/problem-message'
import classes from './draft.module.css'
import { type SampleData, suggestSampleData } from './sample-data'

type DraftSamplesProps = {
  source: string
  blueprints: NewBlueprint[]
  purpose: string
  samples: SampleData
  onChange: (samples: SampleData) => void
}

/** Asks for sample data, and shows how much of it there is. */
export function DraftSamples({ source, blueprints, purpose, samples, onChange }: DraftSamplesProps) {
  const suggest = useMutation({ mutationFn: () => suggestSampleData(source, blueprints, purpose), onSuccess: onChange })
  const names = Object.entries(samples)
  return (
    <div>
      {names.length > 0 && (
        <>
          <Text size="sm">Sample data</Text>
          <ul className={classes.samples}>
            {names.map(([key, entities]) => (
              <li key={key}>
                {entities.length} {key}: {entities.map(({ identifier }) => identifier).join(', ')}
              </li>
            ))}
          </ul>
        </>
      )}
      {suggest.error && <ProblemMessage error={suggest.error} />}
      <Button variant="default" mt={4} loading={suggest.isPending} onClick={() => suggest.mutate()}>
        {names.length ? 'Write other sample data' : 'Write sample data'}
      </Button>
      {names.length > 0 && (
        <Button variant="subtle" color="gray" mt={4} ml="xs" onClick={() => onChange({})}>
          Leave out sample data
        </Button>
      )}
    </div>
  )
}
