import { Anchor, Button, Text, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { sourcesQuery } from '../ai/ai-queries'
import { templates } from '../templates'
import type { Template } from '../templates/template'
import { applyTemplate } from '../templates/template-setup'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import classes from './start.module.css'

/** What a new administrator wants to build: a template with sample data, or nothing yet. */
export function Start() {
  const navigate = useNavigate()
  const [step, setStep] = useState('')
  const { data: sources } = useQuery(sourcesQuery)
  const apply = useMutation({
    mutationFn: (template: Template) => applyTemplate(template, setStep),
    onSuccess: () => navigate({ to: '/home' }),
  })
  return (
    <Screen title="What do you want to build?">
      <div className={classes.start}>
        <Text c="dimmed">
          A template creates blueprints with their rules, sample data and charts. You can change and delete all of it.
        </Text>
        {apply.error && <ProblemMessage error={apply.error} />}
        <ul className={classes.templates}>
          {templates.map((template) => (
            <li key={template.key} className={classes.template}>
              <template.icon size={24} stroke={1.4} aria-hidden />
              <div className={classes.text}>
                <Title order={2}>{template.name}</Title>
                <Text size="sm">{template.description}</Text>
                <Text size="xs" c="dimmed">
                  {template.blueprints.map(({ name }) => name).join(' · ')}
                </Text>
              </div>
              <Button
                variant="default"
                aria-label={`Create ${template.name}`}
                loading={apply.isPending && apply.variables === template}
                disabled={apply.isPending}
                onClick={() => apply.mutate(template)}
              >
                Create
              </Button>
            </li>
          ))}
        </ul>
        <Text size="sm" c="dimmed" role="status">
          {apply.isPending && `${step}…`}
        </Text>
        <Text>
          Or{' '}
          <Anchor component={Link} to="/home">
            start empty
          </Anchor>
          , or{' '}
          <Anchor component={Link} to="/blueprints/import">
            with a file of your own
          </Anchor>
          {!!sources?.length && (
            <>
              , or{' '}
              <Anchor component={Link} to="/blueprints/draft">
                describe it in your own words
              </Anchor>
            </>
          )}
          .
        </Text>
      </div>
    </Screen>
  )
}
