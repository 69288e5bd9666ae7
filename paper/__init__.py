"""The paper's experiments: every table and figure, with the recipes, baselines and figures that
only they need. Part of the source repository, not of the installed package.

    transduce reproduce adr        one experiment
    make paper                     all of them
"""
