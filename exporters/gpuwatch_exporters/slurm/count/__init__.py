"""From records to samples. Pure: nothing here asks anything or looks at a clock."""
