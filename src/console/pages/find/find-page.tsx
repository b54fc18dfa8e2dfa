import { useSignal } from '@preact/signals';
import { navigate, query } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { JobPage } from '../job/job-page.tsx';

/** Finds what became of a pushed URL, whichever crawler it went to. */
export function FindPage() {
  const asked = query.value.get('rid') ?? '';
  const typed = useSignal('');
  if (asked !== '') return <JobPage key={asked} rid={asked} />;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Find by rid</h1>
          <p>Every push answers with one. In the queue, on its way or stored: it is found here.</p>
        </div>
      </div>
      <Card>
        <Form onSubmit={() => navigate(`/jobs/${typed.value.trim()}`)}>
          <TextField
            label="rid"
            {...bound(typed)}
            pattern="\s*[0-9a-f]{24}\s*"
            placeholder="6a5f3c7e0f1e2d3c4b5a6978"
            help="24 digits and letters from a to f."
            required
            autofocus
            mono
          />
          <div class="row end">
            <Button kind="primary" submit>
              Find
            </Button>
          </div>
        </Form>
      </Card>
    </>
  );
}
